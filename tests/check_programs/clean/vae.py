"""A variational autoencoder: noise is constant, mean and variance learn through it."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(3):
    x = torch.rand(5, 6)
    mean, log_var = encoder(x).chunk(2, -1)
    z = mean + (0.5 * log_var).exp() * torch.randn_like(mean)
    kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(-1).mean()
    loss = nn.functional.binary_cross_entropy_with_logits(decoder(z), x) + kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
