"""Gradient surgery (PCGrad): each task's gradient by autograd.grad; a head the task does not use gives None."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.ModuleDict({"trunk": nn.Linear(5, 8), "left": nn.Linear(8, 1), "right": nn.Linear(8, 1)})
params = list(net.parameters())
optimizer = torch.optim.SGD(params, lr=0.1)


def task_gradient(loss, keep):
    grads = torch.autograd.grad(loss, params, retain_graph=keep, allow_unused=True)
    grads = [torch.zeros_like(p) if g is None else g for p, g in zip(params, grads, strict=True)]
    return torch.cat([g.flatten() for g in grads])


def project(a, b):
    dot = a @ b
    return a - dot / b.dot(b) * b if dot < 0 else a


for _ in range(3):
    x = torch.randn(9, 5)
    shared = torch.tanh(net["trunk"](x))
    one = F.mse_loss(net["left"](shared), x[:, :1])
    two = F.mse_loss(net["right"](shared), -x[:, :1])
    a, b = task_gradient(one, keep=True), task_gradient(two, keep=False)
    merged = project(a, b) + project(b, a)
    for p, g in zip(params, merged.split([p.numel() for p in params]), strict=True):
        p.grad = g.view_as(p)
    optimizer.step()
    print(one.item().hex(), two.item().hex())
