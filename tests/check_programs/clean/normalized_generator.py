"""A GAN whose generator has BatchNorm and makes its fakes for the critic without a graph, in train mode."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(16, 1))
making, judging = torch.optim.Adam(generator.parameters(), lr=1e-3), torch.optim.Adam(critic.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for _ in range(20):
    with torch.no_grad():
        fakes = generator(torch.randn(32, 4))
    loss = bce(critic(torch.randn(32, 2) + 3), ones) + bce(critic(fakes), zeros)
    judging.zero_grad()
    loss.backward()
    judging.step()
    loss = bce(critic(generator(torch.randn(32, 4))), ones)
    making.zero_grad()
    loss.backward()
    making.step()
    with torch.no_grad():
        print("made", generator(torch.randn(32, 4)).mean(0).tolist())
