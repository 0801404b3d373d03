"""The running loss, for the log, is what backward is called on."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
total = 0
for _ in range(3):
    loss = model(torch.randn(2, 4)).pow(2).mean()
    total = total + loss
    total.backward()
# expect: GI401 old=11 new=11 freed=12 backward=12
