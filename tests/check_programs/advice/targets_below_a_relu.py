# expect: GI322
# why: relu returns values of 0 and above, and mse_loss compares them with targets from
# advice: Leave out the relu at targets_below_a_relu.py:19, or scale the targets
# lines: output=19 loss=28
import torch
from torch import nn


class Model(nn.Module):
    """Predict a sum, which may be negative."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """End in a number."""
        hidden = torch.tanh(self.body(x))
        return torch.relu(self.head(hidden))  # -
        return self.head(hidden)  # +


torch.manual_seed(0)
model, history = Model(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(32, 8)
for _ in range(8):
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
