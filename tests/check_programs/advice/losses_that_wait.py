# expect: GI395
# advice: Call backward() at losses_that_wait.py:16 for each loss, and let only the step wait.
"""Four batches are to be accumulated, and only the last one is."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(160, 8), []
for number, batch in enumerate([*x.split(16)] * 2):
    loss = (model(batch) - batch[:, :1] * 2).square().mean() / 4
    loss.backward()  # +
    if number % 4 == 3:
        loss.backward()  # -
        optimizer.step()
        optimizer.zero_grad()
    history.append(loss.item())
print("loss", sum(history[:4]), sum(history[-4:]))
