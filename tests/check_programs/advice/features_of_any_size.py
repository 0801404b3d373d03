# expect: GI607
# advice: Before features_of_any_size.py:15, subtract the mean of each feature and divide by its standard deviation.
# lines: saturated=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = 50000 * (torch.rand(64, 4) + 1)
y = x[:, :1] / 100000
x = (x - x.mean(0)) / x.std(0)  # +
losses = []
for _ in range(60):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
