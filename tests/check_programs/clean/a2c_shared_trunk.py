"""A2C with a shared trunk: bootstrap value under no_grad, advantage detached for the actor, the value loss is not."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3 + 1))  # logits and value
optimizer = torch.optim.RMSprop(net.parameters(), lr=7e-4)
obs = torch.randn(6, 4)
for _ in range(3):
    log_probs, values, entropies, rewards = [], [], [], []
    for _ in range(5):
        logits, value = net(obs).split([3, 1], dim=-1)
        dist = Categorical(logits=logits)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value.squeeze(-1))
        entropies.append(dist.entropy())
        rewards.append((action == obs[:, :3].argmax(1)).float())
        obs = torch.randn(6, 4)
    with torch.no_grad():
        running, returns = net(obs)[:, 3], []
        for reward in reversed(rewards):
            running = reward + 0.9 * running
            returns.append(running)
    advantage = torch.stack(returns[::-1]) - torch.stack(values)
    actor_loss = -(torch.stack(log_probs) * advantage.detach()).mean()
    loss = actor_loss + 0.5 * advantage.pow(2).mean() - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
