# expect: GI602
# advice: adapter_of_zeros.py:18
# lines: zeros=18 zeros=20 used=24
import torch
from torch import nn


class Adapted(nn.Module):
    """A frozen layer with a small update of low rank."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(6, 4)
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(6, 2))
        self.up = nn.Parameter(torch.empty(2, 4))
        nn.init.normal_(self.down)  # +
        nn.init.zeros_(self.down)  # -
        with torch.no_grad():
            self.up.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the update."""
        return self.base(x) + x @ self.down @ self.up


torch.manual_seed(0)
model = Adapted()
optimizer = torch.optim.SGD([model.down, model.up], lr=0.05)
x = torch.randn(16, 6)
history = []
for _ in range(6):
    loss = (model(x) - x[:, :4]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
