# expect: GI104
# advice: Fix the dtype at checkpoint_of_two_dtypes.py:17: use autocast or the cast only inside the block.
# lines: again=17 backward=27 first=17
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layer, head, dtype = nn.Linear(4, 8), nn.Linear(8, 1), torch.float32
scale = nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters(), scale], lr=0.1)
x, losses = torch.randn(32, 4), []


def block(x):
    h = layer(x)
    return (h.to(dtype) * scale.to(dtype)).float()  # -
    return (h.to(torch.bfloat16) * scale.to(torch.bfloat16)).float()  # +


for _ in range(20):
    dtype = torch.bfloat16
    h = checkpoint(block, x, use_reentrant=False)
    dtype = torch.float32
    loss = (head(h) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
