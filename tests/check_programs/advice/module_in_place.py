# expect: GI101
# advice: Remove inplace=True from the function or module that runs relu_ at module_in_place.py:14.
# lines: backward=16 saved=14 written=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(4, 1))  # -
model = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(), nn.Linear(4, 1))  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 1)
losses = []
for _ in range(30):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
