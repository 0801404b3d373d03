# expect: GI001
# advice: At column_that_is_a_row.py:13, give the one with fewer dimensions those that it lacks, as unsqueeze(1) does.
"""A number for each example has no dimension for features."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, age, history = torch.randn(32, 6), torch.rand(32), []
for _ in range(20):
    features = torch.cat([x, age], dim=1)  # -
    features = torch.cat([x, age.unsqueeze(1)], dim=1)  # +
    loss = (model(features).squeeze(1) - x[:, 0] * age).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
