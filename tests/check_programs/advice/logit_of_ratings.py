# expect: GI502
# advice: At logit_of_ratings.py:15, clamp its input: x.clamp(1e-6, 1 - 1e-6).
# lines: backward=19 first=15 made=17
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 1)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
x = torch.randn(32, 3)
y = torch.rand(32, 1)
losses = []
for _ in range(30):
    p = (layer(x) + 0.5).clamp(0, 1)
    score = torch.logit(p)  # -
    score = torch.logit(p.clamp(1e-6, 1 - 1e-6))  # +
    loss = (score - torch.logit(0.2 + 0.6 * y)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
