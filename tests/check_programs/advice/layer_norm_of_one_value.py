# expect: GI601
# advice: Remove the layer norm (module 1, LayerNorm) of layer_norm_of_one_value.py:14, or let it normalize over
# advice: several values.
# lines: backward=16 layer=9 zeroed=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 1), nn.LayerNorm(1))  # -
model = nn.Sequential(nn.Linear(4, 1))  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
