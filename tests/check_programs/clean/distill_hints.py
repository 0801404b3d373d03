"""Distillation with a hint layer: the frozen teacher runs without no_grad, it has nothing that needs a gradient."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.ReLU())
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        hidden = self.body(x)
        return hidden, self.out(hidden)


torch.manual_seed(0)
teacher, student = Net(32).eval(), Net(8)
for p in teacher.parameters():
    p.requires_grad_(False)
regressor = nn.Linear(8, 32)
optimizer = torch.optim.SGD([*student.parameters(), *regressor.parameters()], lr=0.1)
T = 4.0
for _ in range(3):
    x, y = torch.randn(10, 6), torch.randint(4, (10,))
    teacher_hidden, teacher_logits = teacher(x)
    hidden, logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / T, 1), F.softmax(teacher_logits / T, 1), reduction="batchmean") * T * T
    loss = 0.7 * soft + 0.3 * F.cross_entropy(logits, y) + F.mse_loss(regressor(hidden), teacher_hidden)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
