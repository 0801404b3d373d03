"""A sequence of one batch: [1, T, 1] against [1, T], summed up."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
rnn, head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
x, y = torch.randn(1, 5, 3), torch.randn(1, 5)
out, _ = rnn(x)
loss = F.l1_loss(head(out), y, reduction="sum")
loss.backward()
# expect: GI701 broadcast=11 reduced=11 backward=12
