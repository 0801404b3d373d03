# expect: GI501
# advice: Which values go in there? See them in gradinspect step, with 'break nan'.
# lines: backward=18 made=15
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 3, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.02)
nn.init.eye_(layer.weight)
with torch.no_grad():  # +
    layer.weight.add_(torch.diag(torch.tensor([0.0, 0.3, 0.6])))  # +
x, losses = torch.randn(32, 3), []
for _ in range(20):
    u, s, v = torch.linalg.svd(layer.weight)
    loss = (x @ u @ v - x.flip(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
