# expect: GI103
# advice: Move weights_clipped_through_data.py:17 after weights_clipped_through_data.py:21, unless something in
# advice: between needs the new values; in that case use last.clone() at weights_clipped_through_data.py:15, so that
# advice: backward still has the values it needs.
# lines: backward=21 saved=15 written=17
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(4, 8)
last = nn.Parameter(torch.rand(8))
optimizer = torch.optim.SGD([*critic.parameters(), last], lr=0.05)
x, losses = torch.randn(32, 4), []
for _ in range(30):
    score = torch.tanh(critic(x)) * last  # -
    score = torch.tanh(critic(x)) * last.clone()  # +
    last.data.clamp_(-0.9, 0.9)
    seen = last.abs().max().item()
    loss = (score.sum(1) - x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
