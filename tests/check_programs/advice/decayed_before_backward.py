# expect: GI103
# advice: Move decayed_before_backward.py:15 after decayed_before_backward.py:17, unless something in between needs
# advice: the new values.
# lines: backward=17 saved=13 written=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(30):
    loss = (model(x) - x[:, :1]).square().mean()
    for p in model.parameters():  # -
        p.data.mul_(0.999)  # -
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():  # +
        p.data.mul_(0.999)  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
