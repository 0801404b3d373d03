# expect: GI502
# advice: At squashed_action.py:14, clamp its input: x.clamp(min=-1 + 1e-6).
# lines: backward=18 first=14 made=16
import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Linear(3, 1)
optimizer = torch.optim.Adam(actor.parameters(), lr=0.01)
x = 12 * torch.randn(32, 3)
losses = []
for _ in range(30):
    action = torch.tanh(actor(x))
    change = torch.log1p(-action.square())  # -
    change = torch.log1p((-action.square()).clamp(min=-1 + 1e-6))  # +
    loss = -change.mean() + (action - 0.1 * x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
