"""A code is rounded, so the encoder never learns."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 4), nn.Linear(4, 4)
code = encoder(torch.randn(3, 4)).round()
loss = decoder(code).pow(2).mean()
loss.backward()
# expect: GI601 zeroed=8 backward=10
