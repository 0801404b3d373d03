# expect: GI001
# advice: The loss was given float64, as NumPy makes it: where it is computed, pass target.float().
"""Prices come from a table of NumPy, and keep its precision."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
table = np.random.default_rng(0).standard_normal((64, 4))
x, prices = torch.from_numpy(table[:, :3]).float(), torch.from_numpy(table[:, 0] - table[:, 2])
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
history = []
for _ in range(20):
    guess = net(x).squeeze(-1)
    loss = nn.functional.huber_loss(guess, prices)  # -
    loss = nn.functional.huber_loss(guess, prices.float())  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
