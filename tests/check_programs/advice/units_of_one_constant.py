# expect: GI604
# advice: with random values at units_of_one_constant.py:17, such as by nn.init.xavier_uniform_().
# lines: set=17
import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    """Two layers of one constant before a head of another."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 1))
        for layer in self.net[::2]:
            nn.init.constant_(layer.weight, 0.2)  # -
            nn.init.xavier_uniform_(layer.weight)  # +
            nn.init.zeros_(layer.bias)

    def forward(self, window):
        return self.net(window)


series = torch.sin(torch.arange(200.0) / 5)
windows = series.unfold(0, 6, 1)
model = Forecaster()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for _ in range(30):
    loss = (model(windows[:, :5]) - windows[:, 5:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
