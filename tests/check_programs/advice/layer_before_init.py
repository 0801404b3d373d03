# expect: GI001
# why: cannot assign module before Module.__init__() call
# advice: Call super().__init__() before the first assignment in __init__.
# lines: failed=13 called=22
"""A module that sets up its layer first."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(6, 1)  # -
        super().__init__()
        self.fc = nn.Linear(6, 1)  # +

    def forward(self, x):
        return self.fc(x)


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
