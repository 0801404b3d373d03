# expect: GI361
# why: position is a buffer, so model.parameters() does not contain it.
# advice: Make position an nn.Parameter instead of registering it as a buffer.
# lines: optimizer=24 made=12 backward=30
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("position", torch.zeros(6, 8, requires_grad=True))  # -
        self.position = nn.Parameter(torch.zeros(6, 8))  # +
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the position to each token."""
        return self.head((x + self.position).tanh())


torch.manual_seed(0)
model = Model()

optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x, history = torch.randn(4, 6, 8), []
for _ in range(6):
    loss = (model(x) - 1).square().mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
