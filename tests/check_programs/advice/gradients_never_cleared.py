# expect: GI362
# advice: Call optimizer.zero_grad() after gradients_never_cleared.py:14, in the same loop.
# lines: backward=13 step=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()  # +
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
