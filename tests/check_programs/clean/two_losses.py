"""Actor and critic share a trunk; the first backward keeps the graph for the second."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, actor, critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*trunk.parameters(), *actor.parameters(), *critic.parameters()])
for _ in range(2):
    h = torch.tanh(trunk(torch.randn(5, 4)))
    value = critic(h)
    policy_loss = -(actor(h).log_softmax(-1)[:, 0] * (1 - value.detach()[:, 0])).mean()
    value_loss = (value - 1).pow(2).mean()
    optimizer.zero_grad()
    policy_loss.backward(retain_graph=True)
    value_loss.backward()
    optimizer.step()
    print(policy_loss.item().hex(), value_loss.item().hex())
