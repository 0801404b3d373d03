"""Comparisons whose sides are equal, or nearly the same computation, by right: none of them is a mistake."""

import copy

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
teacher = copy.deepcopy(model)  # trained as well, by what it is compared with
gate = nn.Linear(6, 2)
other = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
weights = [*model.parameters(), *teacher.parameters(), *gate.parameters(), *other.parameters()]
optimizer = torch.optim.SGD(weights, lr=0.05)
for _ in range(6):
    x = torch.randn(16, 6)
    y = x[:, :2].tanh()
    out = model(x)
    beyond = out - out.clamp(-50, 50)  # a penalty for what is out of range, and nothing is
    close = functional.mse_loss(model(x), model(x + 0.01 * torch.randn_like(x)))  # two views
    same_now = functional.mse_loss(out, teacher(x))  # equal until the first step, and of other weights
    score = functional.log_softmax(gate(x), 1)
    magic = torch.exp(score - score.detach())  # DiCE: one, with a gradient
    twins = (model(x) - other(x)).square().mean()
    loss = (out - y).square().mean() + beyond.square().sum() + close + same_now + twins + (magic * y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
