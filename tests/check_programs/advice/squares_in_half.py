# expect: GI502
# advice: At squares_in_half.py:14, compute it in float32 or bfloat16.
# lines: backward=17 made=14
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-6)
x = 200 * torch.randn(16, 4)
losses = []
for _ in range(30):
    h = layer(x)
    loss = h.half().square().mean()  # -
    loss = h.float().square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
