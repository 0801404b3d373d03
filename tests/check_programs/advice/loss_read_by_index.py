# expect: GI001
# advice: At loss_read_by_index.py:16, read the number with item() instead of [0].
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    number = loss.data[0]  # -
    number = loss.item()  # +
    history.append(float(number))
print("loss", history[0], history[-1])
