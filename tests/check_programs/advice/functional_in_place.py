# expect: GI101
# advice: h = F.relu(h)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    h = torch.tanh(layer(x))
    F.relu_(h)  # -
    h = F.relu(h)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
