# expect: GI001
# advice: At array_of_a_result.py:9, write detach().numpy() instead of numpy().
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
print("at first", net(x[:2]).numpy())  # -
print("at first", net(x[:2]).detach().numpy())  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
