# expect: GI379
# why: They do not require grad: they are copies of what was frozen at frozen_copy.py:14.
# advice: If they should learn, call requires_grad_(True) on the copy of frozen_copy.py:15.
# lines: frozen=14 copied=15 optimizer=18 step=28
import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
teacher = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
teacher.requires_grad_(False)
student = copy.deepcopy(teacher)  # -
student = copy.deepcopy(teacher).requires_grad_(True)  # +
student[2] = nn.Linear(8, 1)
optimizer = torch.optim.Adam(student.parameters(), lr=0.05)
history = []
for _ in range(8):
    loss = (student(x) - y - teacher(x)).square().mean()
    if not history:
        history.append(loss.item())
    optimizer.zero_grad()

    loss.backward()

    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
