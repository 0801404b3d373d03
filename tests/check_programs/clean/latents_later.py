"""An optimizer holds latents from the beginning, which learn in the second phase."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
latents = torch.zeros(5, 3)
optimizer = torch.optim.Adam([{"params": net.parameters()}, {"params": [latents], "lr": 0.1}], lr=0.01)
for step in range(12):
    if step == 8:
        latents.requires_grad_()
    loss = (net(latents + 1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
