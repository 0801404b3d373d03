"""A hypernetwork writes the weights it makes into .data of the model that uses them."""

import torch
from torch import nn

torch.manual_seed(0)
hyper = nn.Linear(3, 8)
model = nn.Linear(4, 2, bias=False)
optimizer = torch.optim.Adam(hyper.parameters())
for _ in range(2):
    model.weight.data = hyper(torch.ones(3)).view(2, 4)
    loss = model(torch.randn(5, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=11 detached=11 used=12 backward=14 step=15
