"""Distillation: the first argument of kl_div is made of probabilities."""

import torch
from torch import nn

torch.manual_seed(0)
student, teacher = nn.Linear(6, 3), nn.Linear(6, 3).requires_grad_(False)
distance = nn.KLDivLoss(reduction="batchmean")
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 6)
    p = student(x).softmax(1)
    loss = 4 * distance(p, teacher(x).softmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI352 applied=12 loss=13 backward=15
