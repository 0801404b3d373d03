# expect: GI307
# why: detach() returns a new tensor
# advice: aim = aim.detach()
# lines: called=14 backward=18
import torch
from torch import nn

torch.manual_seed(0)
value = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer, losses = torch.optim.Adam(value.parameters(), lr=0.02), []
now, later, reward = torch.randn(64, 2), torch.randn(64, 2), torch.rand(64, 1)
for _ in range(40):
    aim = reward + 0.5 * value(later)
    aim.detach()  # -
    aim = aim.detach()  # +
    loss = (value(now) - aim).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
