# expect: GI362
# advice: Call optimizer.zero_grad() inside the closure, before closure_never_clears.py:16.
# lines: backward=16 step=21
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)
x, losses = torch.randn(32, 8), []


def closure():
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()  # +
    loss.backward()
    return loss


for _ in range(5):
    losses.append(optimizer.step(closure).item())
print("loss", losses[0], losses[-1])
