# expect: GI601
# advice: At mask_of_nothing.py:16, which factor is that, and is it meant to be zero?
# lines: backward=18 zeroed=16
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(32, 4)
keep = torch.zeros(8)
keep[:0] = 1.0  # -
keep[:6] = 1.0  # +
losses = []
for _ in range(30):
    loss = (head(encoder(x) * keep) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
