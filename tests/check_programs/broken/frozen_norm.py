"""A batch norm in eval mode keeps its statistics, which a pass in train mode then overwrites."""

import torch
from torch import nn

torch.manual_seed(0)
norm = nn.BatchNorm1d(4)
x = torch.randn(8, 4, requires_grad=True)
norm.eval()
loss = norm(x).sum()
norm.train()
norm(x.detach() * 3)
loss.backward()
# expect: GI103 saved=10 written=12
