# expect: GI001
# advice: Remove shuffle=True at sampler_and_shuffle.py:12: the sampler decides the order.
"""The loader is told twice in which order to go."""

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
x, history = torch.randn(256, 5), []
data = TensorDataset(x, x.sum(1, keepdim=True))
loader = DataLoader(data, batch_size=32, shuffle=True, sampler=RandomSampler(data))  # -
loader = DataLoader(data, batch_size=32, sampler=RandomSampler(data))  # +
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
