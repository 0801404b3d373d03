# expect: GI001
# advice: At view_of_transposed.py:10, write reshape() instead of view().
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(12, 1)
x = torch.randn(32, 3, 4)
turned = x.transpose(1, 2)
flat = turned.view(32, 12)  # -
flat = turned.reshape(32, 12)  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(flat) - x.sum((1, 2)).unsqueeze(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
