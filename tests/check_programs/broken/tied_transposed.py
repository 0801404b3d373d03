"""An autoencoder whose decoder has the encoder's weight, transposed, as data; two optimizers update it."""

import torch
from torch import nn

torch.manual_seed(0)
encode, decode = nn.Linear(8, 3), nn.Linear(3, 8)
decode.weight.data = encode.weight.data.t()
first = torch.optim.SGD(encode.parameters(), lr=0.1)
second = torch.optim.SGD(decode.parameters(), lr=0.1)
for _ in range(2):
    x = torch.randn(16, 8)
    loss = (decode(torch.relu(encode(x))) - x).square().mean()
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
# expect: GI375 shared=8 step=18
