"""Clipping comes before backward."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
rnn, out = nn.LSTM(4, 8), nn.Linear(8, 1)
parameters = list(rnn.parameters()) + list(out.parameters())
optimizer = torch.optim.Adam(parameters)
for _ in range(2):
    optimizer.zero_grad()
    h, _ = rnn(torch.randn(5, 3, 4))
    loss = out(h).square().mean()
    clip_grad_norm_(parameters, max_norm=0.5)
    loss.backward()
    optimizer.step()
# expect: GI364 clipped=15 backward=16 step=17
