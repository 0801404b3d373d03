# expect: GI104
# advice: Make the decision that leads to checkpoint_of_a_table_of_functions.py:20 before the block and pass it in: a
# advice: flag, a counter or a random number may have changed by the time of the recomputation.
# lines: again=20 backward=37 first=16
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layer, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 4), []


def squashed(x):
    return torch.tanh(layer(x))


def plain(x):
    return layer(x) * 0.5


kinds = {"now": squashed}


def block(x):
    return kinds["now"](x)


for _ in range(20):
    kinds["now"] = squashed
    h = checkpoint(block, x, use_reentrant=False)  # -
    h = checkpoint(kinds["now"], x, use_reentrant=False)  # +
    kinds["now"] = plain
    loss = (head(h) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
