"""PPO with minibatches and the shapes in order, entropy, a value loss, clipped gradients."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
parameters = [*actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
states, actions, returns = torch.randn(16, 4), torch.randint(3, (16,)), torch.randn(16)
with torch.no_grad():
    old = torch.distributions.Categorical(logits=actor(states)).log_prob(actions)
    advantages = returns - critic(states).squeeze(-1)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
history = []
for _ in range(2):
    for batch in torch.randperm(16).split(8):
        policy = torch.distributions.Categorical(logits=actor(states[batch]))
        ratio = (policy.log_prob(actions[batch]) - old[batch]).exp()
        clipped = ratio.clamp(0.8, 1.2)
        gain = torch.min(ratio * advantages[batch], clipped * advantages[batch]).mean()
        value_loss = F.mse_loss(critic(states[batch]).flatten(), returns[batch])
        loss = value_loss - gain - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        history.append(loss.item())
print([value.hex() for value in history])
