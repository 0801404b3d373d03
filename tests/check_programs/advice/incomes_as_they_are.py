# expect: GI607
# advice: Before incomes_as_they_are.py:17, subtract the mean of each feature and divide by its standard deviation.
"""Ages and incomes have other scales than weights."""

import torch
from torch import nn

torch.manual_seed(0)
n, history = 200, []
age, income = 18 + 60 * torch.rand(n), 20_000 + 90_000 * torch.rand(n)
x = torch.stack([age, income], dim=1)
y = ((age > 40) & (income > 50_000)).float()[:, None]
x = (x - x.mean(0)) / x.std(0)  # +
first, last = nn.Linear(2, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.05)
for _ in range(30):
    h = first(x).sigmoid()
    loss = nn.functional.binary_cross_entropy_with_logits(last(h), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
