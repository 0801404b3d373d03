# expect: GI361
# expect: GI361
# why: layers_made_in_forward.py:20 makes new ones for each backward call
# advice: Make them once, in __init__, and use them at layers_made_in_forward.py
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 8)  # +
        self.norm = nn.LayerNorm(8)  # +

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize a sum."""
        h = torch.relu(self.first(x))

        context = nn.Linear(8, 8)(h)  # -
        context = self.second(h)  # +
        return nn.LayerNorm(8)(context + h)  # -
        return self.norm(context + h)  # +


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
