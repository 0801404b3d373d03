# expect: GI104
# why: draws random numbers, as dropout does
# advice: Remove preserve_rng_state=False at checkpoint_redraws.py:16.
# lines: block=16 backward=20
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 8))
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(16, 8)
history = []
for _ in range(8):
    h = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)  # -
    h = checkpoint(block, x, use_reentrant=False)  # +
    loss = (head(h) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
