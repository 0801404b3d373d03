"""The log-probability of a uniform prior is a comparison and its logarithm: a support, which needs no gradient."""

import torch
from torch import nn
from torch.distributions import Normal, Uniform

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
slope = nn.Parameter(torch.tensor(0.5))
optimizer = torch.optim.Adam([*net.parameters(), slope], lr=1e-2)
prior = Uniform(torch.tensor(0.0), torch.tensor(10.0))
for _ in range(30):
    x = torch.randn(64, 4)
    y = x.sum(1) + 0.3 * torch.randn(64)
    mean, raw = net(x).unbind(1)
    scale = nn.functional.softplus(raw)
    log_joint = Normal(mean * slope, scale).log_prob(y).sum() + prior.log_prob(scale).sum()
    inside = ((slope > 0) & (slope < 5)).float().log()
    optimizer.zero_grad()
    (-log_joint / 64 - inside).backward()
    optimizer.step()
