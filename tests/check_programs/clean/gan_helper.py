"""A GAN whose two players share one function for a step, so that backward is on the same line for both."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()


def step(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
    optimizer.step()
    return loss.item().hex()


for _ in range(3):
    real, fake = torch.randn(6, 2), G(torch.randn(6, 4))
    print(step(bce(D(real), torch.ones(6, 1)) + bce(D(fake.detach()), torch.zeros(6, 1)), opt_d))
    print(step(bce(D(fake), torch.ones(6, 1)), opt_g))
# options: --steps 5
