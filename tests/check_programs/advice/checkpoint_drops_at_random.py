# expect: GI104
# options: --only GI104 --steps 1
# advice: Do what checkpoint_drops_at_random.py:18 does before the block, and pass its result in: a flag, a counter, a
# advice: cache or a random number may have changed by the time of the recomputation.
# lines: again=20 backward=30 decision=18 first=19
import random

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

random.seed(1)
torch.manual_seed(0)
first, second = nn.Linear(4, 4), nn.Linear(4, 4)


def block(x, keep=None):
    if random.random() < 0.5 if keep is None else keep:
        return torch.tanh(first(x))
    return torch.sigmoid(second(x))


optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
x, y = torch.randn(16, 4), torch.randn(16, 4)
losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = (checkpoint(block, x, use_reentrant=False) - y).square().mean()  # -
    loss = (checkpoint(block, x, step % 2 == 0, use_reentrant=False) - y).square().mean()  # +
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-2])
