# expect: GI327
# why: reward is what the policy is to get more of, and the loss adds its product with a log-probability
# advice: Change the sign of the product at reward_without_a_minus.py:20: the loss of a policy is -log_prob * reward.
# lines: loss=20
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
history = []
for _ in range(30):
    state = torch.randn(64, 4)
    choice = Categorical(logits=policy(state))
    action = choice.sample()
    reward = (action == (state[:, 0] > 0)).float()
    log_prob = choice.log_prob(action)

    loss = (log_prob * reward).mean()  # -
    loss = -(log_prob * reward).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(1 - reward.mean().item())
print("loss", history[0], history[-1])
