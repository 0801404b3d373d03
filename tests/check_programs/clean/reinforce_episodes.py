"""REINFORCE with a replayed value fit: log-probabilities are cleared each episode, the buffer is detached."""

from collections import deque

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
agent = nn.ModuleDict({"cell": nn.RNNCell(2, 8), "actor": nn.Linear(8, 2), "critic": nn.Linear(8, 1)})
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
log_probs, rewards, replay, baseline = [], [], deque(maxlen=30), 0.0
for _ in range(4):
    hidden, observation, states = torch.zeros(1, 8), torch.randn(1, 2), []
    for _ in range(6):
        hidden = agent["cell"](observation, hidden)
        choice = Categorical(logits=agent["actor"](hidden))
        action = choice.sample()
        rewards.append(1.0 if action.item() == int(observation[0, 0] > 0) else -1.0)
        log_probs.append(choice.log_prob(action))
        states.append(hidden.detach())
        observation = torch.randn(1, 2)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    replay.extend(zip(states, returns, strict=True))
    policy = -(torch.cat(log_probs) * (returns - baseline)).mean()
    old_states, old_returns = zip(*replay, strict=True)
    value = (agent["critic"](torch.cat(old_states)).squeeze(1) - torch.stack(old_returns)).square().mean()
    optimizer.zero_grad()
    (policy + 0.5 * value).backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * returns.mean().item()
    log_probs.clear()
    rewards.clear()
    print(policy.item().hex(), value.item().hex(), baseline.hex())
