# expect: GI001
# advice: The array holds objects: make it one of numbers before, as astype(numpy.float32) does.
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(2, 1)
table = np.array([[1.0, 2.0], [0.5, 1.0], [2.0, 0.0]], dtype=object)
x = torch.from_numpy(table)  # -
x = torch.from_numpy(table.astype(np.float32))  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
