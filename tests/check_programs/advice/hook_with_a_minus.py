# expect: GI803
# advice: Leave out the minus sign in the hook of hook_with_a_minus.py:11.
# lines: hooked=11 backward=18
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
for p in model.parameters():
    p.register_hook(lambda g: -g / (g.norm() + 1))  # -
    p.register_hook(lambda g: g / (g.norm() + 1))  # +
x = torch.randn(32, 3)

for _ in range(30):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
