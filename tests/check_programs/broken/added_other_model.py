"""zero_grad is called on another model than the one that learns."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
target = copy.deepcopy(model)
optimizer = torch.optim.RMSprop(model.parameters())
for _ in range(3):
    target.zero_grad()
    with torch.no_grad():
        wanted = target(torch.randn(8, 4))
    loss = nn.functional.smooth_l1_loss(model(torch.randn(8, 4)), wanted)
    loss.backward()
    optimizer.step()
# expect: GI362 step=18 backward=17
