# expect: GI327
# why: adv is what the policy is to get more of, and the loss adds its product with a ratio of probabilities
# advice: Change the sign of what clipped_ratio.py:30 adds up: the loss of a policy is -mean(ratio * adv).
# lines: loss=30
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
history = []
for _ in range(8):
    state = torch.randn(64, 4)
    with torch.no_grad():
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        before = choice.log_prob(action)

    reward = (action == (state[:, 0] > 0)).float()
    adv = reward - reward.mean()
    history.append(1 - reward.mean().item())
    for _ in range(4):
        choice = Categorical(logits=policy(state))
        log_prob = choice.log_prob(action)
        ratio = (log_prob - before).exp()
        clipped = ratio.clamp(0.8, 1.2)
        surrogate = torch.min(ratio * adv, clipped * adv)

        loss = surrogate.mean()  # -
        loss = -surrogate.mean()  # +
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", history[0], history[-1])
