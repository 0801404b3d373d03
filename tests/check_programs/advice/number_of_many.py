# expect: GI001
# advice: Only a tensor of one element is a number: at number_of_many.py:10, reduce it first, as mean() does.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
errors = (net(x) - x.sum(1, keepdim=True)).square()
print("at first", errors.item())  # -
print("at first", errors.mean().item())  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
