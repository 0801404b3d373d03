# expect: GI401
# advice: total = total.detach()
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.randn(8, 1)
total, losses = 0.0, []
for _ in range(30):
    loss = (model(x) - y).square().mean()
    total += loss
    optimizer.zero_grad()
    total.backward()
    total = total.detach()  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
