# expect: GI361
# why: layer_made_in_forward.py:19 makes new ones for each backward call
# advice: Make them once, in __init__, and use them at layer_made_in_forward.py:19
# lines: made=19 backward=34
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.shortcut = nn.Linear(4, 8)  # +

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add a shortcut."""
        h = torch.relu(self.first(x))

        return h + nn.Linear(4, 8)(x)  # -
        return h + self.shortcut(x)  # +


torch.manual_seed(0)
model = nn.Sequential(Block(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
history = []
for _ in range(8):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    if not history:
        history.append(loss.item())
    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
