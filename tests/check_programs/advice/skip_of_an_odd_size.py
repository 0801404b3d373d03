# expect: GI001
# advice: All dimensions but the one that is joined must be equal: crop, pad or interpolate one to the size of the
# advice: other.
"""Half of 25 pixels is 12, and twice that is 24."""

import torch
from torch import nn
from torch.nn.functional import interpolate, max_pool2d

torch.manual_seed(0)
down, up = nn.Conv2d(1, 4, 3, padding=1), nn.ConvTranspose2d(4, 4, 2, stride=2)
head = nn.Conv2d(8, 1, 1)
optimizer = torch.optim.Adam([*down.parameters(), *up.parameters(), *head.parameters()], lr=0.02)
x, history = torch.randn(4, 1, 25, 25), []
for _ in range(20):
    skip = down(x).relu()
    wide = up(max_pool2d(skip, 2))
    wide = interpolate(wide, size=skip.shape[2:])  # +
    loss = nn.functional.mse_loss(head(torch.cat([wide, skip], dim=1)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
