"""A running mean of the loss enters the next loss."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
baseline = torch.zeros(())
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    baseline = 0.9 * baseline + 0.1 * loss
    (loss - baseline).abs().backward(retain_graph=True)
# expect: GI801 old=11 new=11 backward=12
