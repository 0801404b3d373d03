"""Adversarial training: the attack's gradient moves the input, and scales a second loss."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, label = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    attacked = x.clone().requires_grad_()
    (direction,) = torch.autograd.grad(F.cross_entropy(model(attacked), label), attacked)
    attacked = (attacked + 0.1 * direction.sign()).detach()
    clean, hard = F.cross_entropy(model(x), label), F.cross_entropy(model(attacked), label)
    last = model[2].weight
    weight = torch.autograd.grad(clean, last, retain_graph=True)[0].norm()
    weight = weight / (torch.autograd.grad(hard, last, retain_graph=True)[0].norm() + 1e-4)
    loss = clean + weight * hard
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
