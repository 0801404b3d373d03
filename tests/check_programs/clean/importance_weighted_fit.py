"""Importance weights: the ratio is taken in logs, normalised over the batch and held constant for the fit."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)


class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(2))
        self.raw_scale = nn.Parameter(torch.zeros(2))

    def forward(self):
        return Normal(self.loc, nn.functional.softplus(self.raw_scale) + 1e-4)


def log_target(x):
    return Normal(torch.tensor([3.0, -2.0]), 0.7).log_prob(x).sum(-1)


q = Density()
optimizer = torch.optim.Adam(q.parameters(), lr=0.05)
for _ in range(3):
    with torch.no_grad():
        proposal = q()
        samples = proposal.sample((64,))
        weights = (log_target(samples) - proposal.log_prob(samples).sum(-1)).softmax(0)
    loss = -(weights * q().log_prob(samples).sum(-1)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), (1 / weights.square().sum()).item().hex())
