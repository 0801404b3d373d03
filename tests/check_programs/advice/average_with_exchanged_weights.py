# expect: GI387
# advice: average_with_exchanged_weights.py:24, exchange the weights: 0.99 for the old value, 0.01 for the new one.
import copy

import torch
from torch import nn

torch.manual_seed(0)
student = nn.Linear(8, 2)
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(32, 8)
y = x[:, :2]
losses = []
for _ in range(8):
    near = x + 0.1 * torch.randn_like(x)
    loss = (student(x) - y).square().mean() + (student(x) - teacher(near)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    with torch.no_grad():
        for kept, new in zip(teacher.parameters(), student.parameters(), strict=True):
            kept.copy_(0.01 * kept + 0.99 * new)  # -
            kept.copy_(0.99 * kept + 0.01 * new)  # +
print("loss", losses[0], losses[-1])
