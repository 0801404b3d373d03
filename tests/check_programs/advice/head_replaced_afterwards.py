# expect: GI361
# advice: Make optimizer after head_replaced_afterwards.py:10, or pass the new parameters to its add_param_group().
# lines: backward=16 optimizer=9 replaced=10
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # -
model[2] = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # +
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
