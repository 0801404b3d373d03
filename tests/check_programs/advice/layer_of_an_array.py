# expect: GI001
# advice: At layer_of_an_array.py:14, pass torch.from_numpy() of it, of dtype float32.
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = np.random.default_rng(0).random((32, 4), dtype=np.float32)
y = torch.from_numpy(x).sum(1, keepdim=True)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - y).square().mean()  # -
    loss = (net(torch.from_numpy(x)) - y).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
