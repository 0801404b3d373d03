# expect: GI328
# advice: At score_of_another_draw.py:24, score what score_of_another_draw.py:20 draws.
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)


def reward_of(state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """Return 1 where the action is the sign of the first feature, and -1 elsewhere."""
    return (action == (state[:, 0] > 0)).float() * 2 - 1


losses = []
for _ in range(20):
    state = torch.randn(64, 4)
    dist = torch.distributions.Categorical(logits=policy(state))
    action = dist.sample()
    reward = reward_of(state, action)
    losses.append(-reward.mean().item())

    score = dist.log_prob(dist.sample())  # -
    score = dist.log_prob(action)  # +
    loss = -(score * reward).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", losses[0], losses[-1])
