"""REINFORCE with a learned baseline: the advantage is detached, and a loss of its own trains the baseline."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
baseline = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
policy_optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline_optimizer = torch.optim.Adam(baseline.parameters(), lr=1e-2)

for _ in range(3):
    state, states, log_probs, rewards = torch.randn(2), [], [], []
    for _ in range(8):
        dist = Categorical(logits=policy(state))
        action = dist.sample()
        states.append(state)
        log_probs.append(dist.log_prob(action))
        state = 0.9 * state + (0.3 if action.item() else -0.3)
        rewards.append(-state.abs().sum().item())
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns, values = torch.tensor(returns), baseline(torch.stack(states)).squeeze(-1)
    advantage = returns - values.detach()
    policy_loss = -(torch.stack(log_probs) * advantage).sum()
    value_loss = nn.functional.mse_loss(values, returns)
    for optimizer, loss in ((policy_optimizer, policy_loss), (baseline_optimizer, value_loss)):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(policy_loss.item().hex(), value_loss.item().hex())
