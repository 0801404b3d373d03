# expect: GI366
# advice: Move optimizer_made_in_the_loop.py:12 out of the loop, so that it runs once.
# lines: optimizer=12 step=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
x, losses = torch.randn(32, 8), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # +
for _ in range(30):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # -
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
