"""The losses of the auxiliary heads are put into torch.tensor, and added to the main loss."""

import torch
from torch import nn

torch.manual_seed(0)
body, main = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*body.parameters(), *main.parameters()])
for _ in range(2):
    h = body(torch.randn(8, 4)).tanh()
    extra = [h.abs().mean(), h.square().mean()]
    loss = main(h).square().mean() + torch.tensor(extra).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI306 detached=12 used=12 backward=14
