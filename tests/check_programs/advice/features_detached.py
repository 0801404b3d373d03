# expect: GI301
# advice: Remove detach() at features_detached.py:12 if this path should train.
# lines: backward=16 detached=12 read=12 step=17 used=14
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 8), []
for _ in range(20):
    h = torch.tanh(encoder(x)).detach()  # -
    h = torch.tanh(encoder(x))  # +
    loss = (head(h) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
