# expect: GI104
# advice: Why does checkpoint_with_a_memory.py:26 get a different tensor in the recomputation: from a cache that the
# advice: block adds to, or of a length that is drawn at random? Do that before the block, and pass the result in.
# lines: again=26 backward=35 first=26
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Memory:
    def __init__(self):
        self.seen = torch.zeros(0, 4)

    def with_new(self, x):
        self.seen = torch.cat([self.seen, x])[-96:]
        return self.seen


torch.manual_seed(0)
layer, head, memory = nn.Linear(4, 8), nn.Linear(8, 1), Memory()
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 4), []


def block(x):
    return torch.tanh(layer(memory.with_new(x)))[-32:]  # -
    return torch.tanh(layer(x))[-32:]  # +


for _ in range(20):
    h = checkpoint(block, x, use_reentrant=False)  # -
    h = checkpoint(block, memory.with_new(x), use_reentrant=False)  # +
    loss = (head(h) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
