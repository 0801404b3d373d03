"""Actor and critic share a trunk that one of the two optimizers holds; warm-up begins with a learning rate of 0."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, actor, critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
opt_a = torch.optim.Adam([*trunk.parameters(), *actor.parameters()], lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=0.0)
for number in range(4):
    for group in opt_c.param_groups:
        group["lr"] = 1e-3 * number
    x = torch.randn(6, 4)
    policy = torch.distributions.Categorical(logits=actor(trunk(x).relu()))
    value = critic(trunk(x).relu()).squeeze(1)
    action = policy.sample()
    advantage = (torch.randn(6) - value).detach()
    opt_a.zero_grad()
    loss_a = -(policy.log_prob(action) * advantage).mean()
    loss_a.backward()
    opt_a.step()
    opt_c.zero_grad()
    value = critic(trunk(x).relu()).squeeze(1)
    loss_c = (value - torch.ones(6)).square().mean()
    loss_c.backward()
    opt_c.step()
    print(loss_a.item().hex(), loss_c.item().hex())
# options: --steps 7
