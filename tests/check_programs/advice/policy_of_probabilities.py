# expect: GI351
# advice: At policy_of_probabilities.py:17, write probs= instead of logits=.
"""The policy ends with a softmax, and its output is called logits."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 5), nn.Softmax(dim=-1))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
history = []
for _ in range(60):
    state = torch.randn(64, 5)
    likely = policy(state)
    policy_of_state = Categorical(probs=likely)  # +
    policy_of_state = Categorical(logits=likely)  # -
    action = policy_of_state.sample()
    reward = (action == state.argmax(1)).float()
    loss = -(policy_of_state.log_prob(action) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(1 - reward.mean().item())
print("loss", history[0], history[-1])
