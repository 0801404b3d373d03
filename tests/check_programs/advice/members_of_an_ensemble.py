# expect: GI372
# why: All 4 places of members have the same Member
# advice: Make 4 layers at members_of_an_ensemble.py:22
import torch
from torch import nn


class Member(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Predict."""
        return self.net(x)


class Ensemble(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()

        self.members = nn.ModuleList([Member()] * size)  # -
        self.members = nn.ModuleList([Member() for _ in range(size)])  # +

    def errors(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Compare each prediction."""
        return torch.stack([(member(x) - y).square().mean() for member in self.members])


torch.manual_seed(0)
model = Ensemble(4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(32, 3)
y = x.sum(1, keepdim=True)
history = []
for _ in range(8):
    loss = model.errors(x, y).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
