"""PGD: the perturbation is a leaf moved through .data, its gradient zeroed, and detached before training."""

import torch
from torch import nn
from torch.nn import functional as F


def pgd(model, x, y, eps=0.3, alpha=0.1, steps=2):
    delta = torch.zeros_like(x).uniform_(-eps, eps).requires_grad_()
    for _ in range(steps):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()
        delta.data.add_(alpha * delta.grad.sign()).clamp_(-eps, eps)
        delta.grad.zero_()
    return delta.detach()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x, y = torch.randn(8, 6), torch.randint(3, (8,))
    delta = pgd(model, x, y)
    opt.zero_grad()  # the attack filled these too
    loss = F.cross_entropy(model(x + delta), y)
    loss.backward()
    opt.step()
    print(loss.item().hex())
