"""A mean teacher: its weights follow the student's, its predictions are the target."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 2))
teacher = copy.deepcopy(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for _ in range(3):
    x = torch.randn(5, 4)
    with torch.no_grad():
        target = teacher(x).softmax(-1)
    loss = -(student(x).log_softmax(-1) * target).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
        slow.data.mul_(0.9).add_(fast.data, alpha=0.1)
    print(loss.item().hex())
