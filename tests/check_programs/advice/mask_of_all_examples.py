# expect: GI001
# advice: Select from the mask what was selected from the tensor, so that both have the same rows.
"""The mask is one for all examples, and the output one for those of training."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, history = torch.randn(120, 7), []
is_valid, train = torch.rand(120) > 0.3, torch.randperm(120)[:90]
for _ in range(20):
    error = (model(x[train]).squeeze(1) - x[train].sum(1)).square()
    loss = error[is_valid].mean()  # -
    loss = error[is_valid[train]].mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
