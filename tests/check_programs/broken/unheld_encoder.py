"""The optimizer gets the parameters of the decoder; those of the encoder were forgotten."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
decoder = nn.Linear(4, 6)
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for _ in range(4):
    x = torch.randn(16, 6)
    loss = (decoder(encoder(x)) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI361 optimizer=9 backward=14
