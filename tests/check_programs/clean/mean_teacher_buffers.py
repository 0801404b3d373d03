"""Mean teacher: the EMA copy runs in train mode under no_grad, its weights lerped and its buffers copied in place."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


def make_net():
    return nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(inplace=True), nn.Linear(12, 3))


@torch.no_grad()
def update_teacher(student, teacher, decay):
    torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 1 - decay)
    for ours, theirs in zip(teacher.buffers(), student.buffers(), strict=True):
        ours.copy_(theirs)


torch.manual_seed(0)
student = make_net()
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.detach_()
optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
for step in range(4):
    x, labels = torch.randn(12, 6), torch.randint(3, (4,))
    logits = student(x + 0.1 * torch.randn_like(x))
    with torch.no_grad():
        soft = teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
    loss = F.cross_entropy(logits[:4], labels) + min(1.0, step / 3) * F.mse_loss(logits.softmax(1), soft)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_teacher(student, teacher, min(1 - 1 / (step + 1), 0.99))
    print(loss.item().hex())
