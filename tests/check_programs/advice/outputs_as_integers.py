# expect: GI301
# advice: At outputs_as_integers.py:12, use the floating-point tensor instead of long.
# lines: backward=16 detached=12 read=12 step=17 used=14
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
x, losses = torch.randn(32, 8), []
for _ in range(30):
    levels = (3 * encoder(x)).long()  # -
    levels = 3 * encoder(x)  # +
    loss = (head(levels.float()) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
