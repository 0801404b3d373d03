"""Two models, two losses: `detach` keeps the discriminator's loss out of the generator; the other goes through both.

Try: gradinspect trace samples/gan.py --backward 2
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
real = torch.randn(64, 2) + 3
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)

fake = generator(torch.randn(64, 8))

discriminator_loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
discriminator_loss += F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
discriminator_optimizer.zero_grad()
discriminator_loss.backward()
discriminator_optimizer.step()

generator_loss = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
generator_optimizer.zero_grad()
generator_loss.backward()
generator_optimizer.step()

print(f"discriminator {discriminator_loss.item():.4f}, generator {generator_loss.item():.4f}")
