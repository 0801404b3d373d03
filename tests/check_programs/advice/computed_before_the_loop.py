# expect: GI102
# advice: Compute computed_before_the_loop.py:12, and all that is read there, inside the loop, so that it is made anew
# advice: after optimizer.step(); or run optimizer.step() once, after the loop.
# lines: backward=17 saved=12 written=18
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
guess = model(x)  # -
for _ in range(30):
    guess = model(x)  # +
    loss = (guess - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
