"""The latent variable of an autoencoder is drawn with sample()."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(2):
    x = torch.randn(5, 6)
    mean, log_scale = encoder(x).chunk(2, -1)
    z = Normal(mean, log_scale.exp()).sample()
    loss = (decoder(z) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=12 detached=13 used=14 backward=16 step=17
