# expect: GI001
# advice: What chunk(), split() and unbind() return is a view: at gate_written_into_a_chunk.py:15, write y = y * z
# advice: instead of y *= z.
"""Half of the features are multiplied by a gate."""

import torch
from torch import nn

torch.manual_seed(0)
inner, outer = nn.Linear(6, 32), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*inner.parameters(), *outer.parameters()], lr=0.02)
x, history = torch.randn(32, 6), []
for _ in range(20):
    a, b = inner(x).chunk(2, dim=1)
    a *= b.sigmoid()  # -
    a = a * b.sigmoid()  # +
    loss = (outer(a).squeeze(1) - x[:, 0] * x[:, 1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
