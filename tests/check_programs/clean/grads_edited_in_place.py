"""Gradients edited in place between backward and step: noise, mean removed, clipped by value and by norm."""

import torch
from torch import nn


def centralize_(parameters):
    for p in parameters:
        if p.grad is not None and p.grad.dim() > 1:
            p.grad.sub_(p.grad.mean(dim=1, keepdim=True))


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2))
opt = torch.optim.RMSprop(net.parameters(), lr=0.01, momentum=0.5, centered=True)
for step in range(4):
    x = torch.randn(12, 6)
    loss = nn.functional.huber_loss(net(x), x[:, :2] * 3)
    opt.zero_grad()
    loss.backward()
    centralize_(net.parameters())
    for p in net.parameters():
        p.grad.add_(torch.randn_like(p.grad), alpha=0.01 / (1 + step))
        p.grad.data.clamp_(-0.5, 0.5)
    total = nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.3)
    opt.step()
    print(loss.item().hex(), total.item().hex())
