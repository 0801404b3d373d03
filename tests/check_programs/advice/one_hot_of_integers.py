# expect: GI001
# advice: A one-hot target is one of fractions: at one_hot_of_integers.py:16, pass target.float(), or the labels
# advice: themselves.
"""one_hot() makes whole numbers."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, history = torch.randn(48, 6), []
target = one_hot(x[:, :4].argmax(1), 4)
for _ in range(20):
    loss = cross_entropy(model(x), target)  # -
    loss = cross_entropy(model(x), target.float())  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
