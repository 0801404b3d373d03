"""Many sigmoids, each with a connection that skips it."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, depth=12, width=24):
        super().__init__()
        self.inp = nn.Linear(2, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.sigmoid(self.inp(x))
        for layer in self.hidden:
            h = h + torch.sigmoid(layer(h))
        return self.out(h)


torch.manual_seed(1)
x = torch.rand(300, 2) * 4 - 2
y = torch.sin(3 * x[:, :1]) * x[:, 1:]
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(200):
    pred = net(x)
    loss = ((pred - y) ** 2).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
print(loss.item())
