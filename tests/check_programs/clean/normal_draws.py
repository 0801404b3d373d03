"""torch.normal() draws actions whose log-probability counts, an input, noise, and first values of a parameter."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
policy, value = nn.Linear(4, 2), nn.Linear(6, 1)
offset = nn.Parameter(torch.normal(torch.zeros(4), 0.1))
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters(), offset], lr=0.01)
for _ in range(4):
    state = torch.normal(torch.zeros(32, 4), torch.ones(32, 4)) + offset
    mean = policy(state)
    action = torch.normal(mean, torch.full_like(mean, 0.5))
    reward = -(action - state[:, :2]).square().sum(1).detach()
    score = Normal(mean, 0.5).log_prob(action.detach()).sum(1)
    expected = value(torch.cat([state, action], dim=1)).squeeze(1)
    loss = -(score * (reward - expected.detach())).mean() + (expected - reward).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

encoder, decoder = nn.Linear(8, 4), nn.Linear(2, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
for _ in range(3):
    x = torch.randn(16, 8)
    mean, logarithm = encoder(x).chunk(2, dim=1)
    drawn = mean + (logarithm / 2).exp() * torch.normal(torch.zeros_like(mean), 1.0)
    loss = (decoder(drawn) - x).square().mean() + (mean.square() + logarithm.exp() - logarithm - 1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
