# expect: GI385
# why: A copy of Sequential follows its parameters, by average_without_statistics.py:28
# advice: Let the buffers of the copy follow, too, after average_without_statistics.py:28
# lines: updated=28
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))
teacher = copy.deepcopy(student).requires_grad_(False).eval()
optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
x, y, history = torch.randn(48, 6) + 4, torch.arange(48) % 3, []
x[range(48), y] += 2

for _ in range(20):
    with torch.no_grad():
        goal = teacher(x).softmax(1)
    out = student(x)
    loss = F.cross_entropy(out, y)
    total = loss + 0.1 * (out.softmax(1) - goal).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    for average, p in zip(teacher.parameters(), student.parameters(), strict=True):
        average.lerp_(p.detach(), 0.1)
    for average, b in zip(teacher.buffers(), student.buffers(), strict=True):  # +
        average.copy_(b)  # +
    history.append(loss.item())
print("loss", history[0], history[-1])
