# expect: GI001
# why: optimizer got an empty parameter list
# advice: Make net.layers an nn.ModuleList: what a list or dict holds is not registered.
# lines: failed=25
"""A network whose layers are all in a list."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(6, 6), nn.Linear(6, 1)]  # -
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 1)])  # +

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(64, 6)
history = []
for _ in range(10):
    loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
