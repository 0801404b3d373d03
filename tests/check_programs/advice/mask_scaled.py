# expect: GI101
# advice: h = torch.where(h < 0.5, h * 0.1, h)
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    h = layer(x).exp()
    h[h < 0.5] *= 0.1  # -
    h = torch.where(h < 0.5, h * 0.1, h)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
