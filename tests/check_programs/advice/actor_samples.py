# expect: GI308
# why: sample() at actor_samples.py:17 draws without a gradient. What actor_samples.py:23 computes
# advice: Use rsample() in place of sample() at actor_samples.py:17.
# lines: sampled=17 used=23 backward=26
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor, critic = nn.Linear(4, 4), nn.Linear(6, 1)
critic.requires_grad_(False)
optimizer = torch.optim.Adam(actor.parameters(), lr=0.05)
history = []
state = torch.randn(256, 4)
for _ in range(12):
    mean, scale = actor(state).chunk(2, dim=1)
    drawn = Normal(mean, scale.exp()).sample()  # -
    drawn = Normal(mean, scale.exp()).rsample()  # +

    score = Normal(mean, scale.exp()).log_prob(drawn).sum(1, keepdim=True)

    action = torch.tanh(drawn)
    value = critic(torch.cat([state, action], dim=1))
    loss = (0.2 * score - value).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
