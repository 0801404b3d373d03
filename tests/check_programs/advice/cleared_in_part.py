# expect: GI362
# why: cleared_in_part.py:20 clears a part of what optimizer holds, but not trunk.weight and trunk.bias.
# advice: Call optimizer.zero_grad() at cleared_in_part.py:20, which clears all of it.
# lines: backward=23 cleared=20 step=24
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(4, 8)
heads = nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.05)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
history = []
for step in range(10):
    head = heads[step % 2]
    loss = (head(torch.tanh(trunk(x))) - y).square().mean()
    if not history:
        history.append(loss.item())
    head.zero_grad()  # -
    optimizer.zero_grad()  # +

    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
