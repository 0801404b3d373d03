# expect: GI001
# advice: The list is empty here: did the loop that fills it run?
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
parts = [net(one) for one in x.split(64)[1:]]  # -
parts = [net(one) for one in x.split(8)[1:]]  # +
first = torch.cat(parts).detach()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
