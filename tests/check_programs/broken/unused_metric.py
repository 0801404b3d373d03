"""The critic's value is only logged: its loss was forgotten."""

import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()])
logged = []
for _ in range(2):
    state, reward = torch.randn(5, 4), torch.randn(5)
    value = critic(state).squeeze(-1)
    logged.append(value.mean().item())
    loss = -(actor(state).log_softmax(-1)[:, 0] * reward).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI303 read=12 last=13 backward=16 step=17 optimizer=8
