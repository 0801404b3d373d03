"""The discriminator's optimizer steps before the generator's loss, which went through the discriminator."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())
fake = G(torch.randn(4, 8))
score = D(fake)
loss_g = F.binary_cross_entropy_with_logits(score, torch.ones(4, 1))
loss_d = F.binary_cross_entropy_with_logits(D(fake.detach()), torch.zeros(4, 1))
opt_d.zero_grad()
loss_d.backward()
opt_d.step()
opt_g.zero_grad()
loss_g.backward()
opt_g.step()
# expect: GI102 saved=13 written=18
