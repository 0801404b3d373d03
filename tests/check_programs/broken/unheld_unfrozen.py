"""The trunk is unfrozen after some steps, and the optimizer was made of what was not frozen then."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
model[0].requires_grad_(False)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for step in range(8):
    if step == 4:
        for p in model.parameters():
            p.requires_grad = True
    loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI361 optimizer=9 unfrozen=13 backward=16
