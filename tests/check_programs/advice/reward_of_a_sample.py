# expect: GI302
# advice: Use rsample() at reward_of_a_sample.py:14 if the distribution has it, or log_prob() of the sample in the
# advice: loss.
# lines: backward=18 detached=14 read=14 used=16
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
policy = nn.Linear(4, 1)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
x, losses = torch.randn(64, 4), []
for _ in range(30):
    action = Normal(policy(x), 0.1).sample()  # -
    action = Normal(policy(x), 0.1).rsample()  # +
    loss = (action - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
