"""An activation in place behind one that keeps its output."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
gate = torch.sigmoid(model(torch.randn(2, 4)))
torch.relu_(gate)
gate.sum().backward()
# expect: GI101 saved=8 written=9
