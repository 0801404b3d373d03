"""A term of a loss whose weight is 0 for now, and parameters that are kept in the graph by adding 0 times them."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, unused = nn.Linear(4, 3), nn.Linear(3, 4), nn.Linear(2, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters(), *unused.parameters()], lr=0.1)
weights = torch.tensor([1.0, 0.0])
for step in range(3):
    x = torch.randn(5, 4)
    code = encoder(x)
    terms = [(decoder(code) - x).square().mean(), code.square().mean()]
    loss = terms[0] + weights[1] * terms[1] + 0.0 * sum(one.sum() for one in unused.parameters())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
