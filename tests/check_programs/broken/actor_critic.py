"""The critic's optimizer steps, then the actor's loss goes back through the critic. In a class, as trainers are."""

import torch
from torch import nn


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.actor = nn.Linear(4, 2)
        self.critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.1)

    def update(self, state):
        action = self.actor(state)
        value = self.critic(action)
        critic_loss = (self.critic(action.detach()) - 1).pow(2).mean()
        critic_loss.backward()
        self.critic_optimizer.step()
        actor_loss = -value.mean()
        actor_loss.backward()


Trainer().update(torch.randn(3, 4))
# expect: GI102 saved=16 written=19
