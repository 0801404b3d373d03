# expect: GI001
# advice: Which dtype is meant? Convert the others on the lines that made them.
# lines: failed=15
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x, losses = torch.randn(16, 3), []
basis = torch.eye(3, dtype=torch.float64)  # -
basis = torch.eye(3)  # +
for _ in range(20):
    h = layer(x)
    solved = torch.linalg.solve(basis, h.T)
    loss = (solved.T - x.flip(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
