# expect: GI602
# advice: Initialize model.2.weight and model.0.weight with small random values at zeros_for_all_weights.py:11, as torch
# advice: does by default. Zeros are safe only for a bias, or for one layer among others that are not zero.
# lines: backward=18 used=16 zeros=11
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for p in model.parameters():
    nn.init.zeros_(p)  # -
    nn.init.normal_(p, std=0.3)  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
