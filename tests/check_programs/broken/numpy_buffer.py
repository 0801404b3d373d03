"""An environment reuses the array of its observation, which torch.from_numpy shares: backward reads the next one."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
observation = np.ones((1, 4), dtype=np.float32)


def step(action: int) -> float:
    observation[:] = observation * 0.9 + action
    return float(observation.sum())


for _ in range(3):
    policy_now = torch.distributions.Categorical(logits=policy(torch.from_numpy(observation)))
    action = policy_now.sample()
    loss = -policy_now.log_prob(action).sum() * step(int(action))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI103 saved=19 backward=23
