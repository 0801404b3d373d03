"""A variational autoencoder whose two terms are both sums: the first as old programs ask for it."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(20, 8), nn.Linear(4, 20)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
x = torch.rand(256, 20)
for start in range(0, 256, 32):
    batch = x[start : start + 32]
    mean, log_variance = encoder(batch).chunk(2, dim=1)
    z = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
    likeness = nn.functional.binary_cross_entropy(torch.sigmoid(decoder(z)), batch, size_average=False)
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    loss = likeness + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
