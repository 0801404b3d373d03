"""A penalty is computed once, before the loop, and added to every loss."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
penalty = model.weight.pow(2).sum()
for _ in range(2):
    loss = model(torch.randn(2, 4)).mean() + 0.1 * penalty
    loss.backward()
# expect: GI401 old=8 new=10 freed=11 backward=11
