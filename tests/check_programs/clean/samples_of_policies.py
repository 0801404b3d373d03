"""Samples of continuous actions that carry no gradient on purpose: policy gradients, and a critic of actions."""

import torch
from torch import nn
from torch.distributions import Independent, Normal

torch.manual_seed(0)
actor, critic = nn.Linear(4, 4), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
for _ in range(4):  # one loss of both: the critic learns to predict what the sampled action returns
    state = torch.randn(16, 4)
    mean, scale = actor(state).chunk(2, dim=1)
    policy = Normal(mean, scale.exp())
    action = policy.sample()
    value = critic(torch.cat([state, action], dim=1))
    returned = -action.square().sum(1, keepdim=True)
    score = policy.log_prob(action).sum(1, keepdim=True)
    loss = (value - returned).square().mean() - (score * (returned - value.detach())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

cell, head = nn.GRUCell(2, 8), nn.Linear(8, 4)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
for _ in range(4):  # what is drawn leads to the next distribution
    hidden, drawn = torch.zeros(16, 8), torch.zeros(16, 2)
    scores, reward = [], 0
    for _ in range(3):
        hidden = cell(drawn, hidden)
        mean, scale = head(hidden).chunk(2, dim=1)
        policy = Independent(Normal(mean, scale.exp()), 1)
        drawn = policy.sample()
        scores.append(policy.log_prob(drawn))
        reward = reward - drawn.square().sum(1)
    loss = -(torch.stack(scores).sum(0) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

actor, critic = nn.Linear(4, 4), nn.Linear(6, 1)
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for _ in range(4):  # only the critic learns
    state = torch.randn(16, 4)
    mean, scale = actor(state).chunk(2, dim=1)
    value = critic(torch.cat([state, Normal(mean, scale.exp()).sample()], dim=1))
    loss = (value - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

critic, learned = nn.Linear(4, 1), []
for _ in range(4):  # a value that is to be predicted, with a discount
    before, after = torch.randn(4), torch.randn(4)
    with torch.no_grad():
        later = critic(after).sum()
    error = 1.0 + 0.9 * later - critic(before).sum()
    loss = error * error
    loss.backward()
    with torch.no_grad():
        for one in critic.parameters():
            one -= 0.01 * one.grad
            one.grad = None
