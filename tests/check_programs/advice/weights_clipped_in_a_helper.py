# expect: GI103
# advice: Use last.clone() at weights_clipped_in_a_helper.py:14, so that backward still has the values it needs.
# lines: backward=24 saved=14 written=16
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(4, 8)
last = nn.Parameter(torch.rand(8))
optimizer = torch.optim.SGD([*critic.parameters(), last], lr=0.05)


def score_and_clip(x):
    score = torch.tanh(critic(x)) * last  # -
    score = torch.tanh(critic(x)) * last.clone()  # +
    last.data.clamp_(-0.9, 0.9)
    return score.sum(1)


x, losses = torch.randn(32, 4), []
for _ in range(30):
    loss = (score_and_clip(x) - x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
