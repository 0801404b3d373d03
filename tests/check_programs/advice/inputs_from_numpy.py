# expect: GI001
# advice: NumPy computes in float64, and layers in float32: convert the input with float() where it is made.
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.from_numpy(np.random.default_rng(0).random((32, 4)))  # -
x = torch.from_numpy(np.random.default_rng(0).random((32, 4))).float()  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
