"""Second-order MAML on sine waves: the inner step stays in the graph, so the outer loss sees through it."""

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-3)


def adapt(params, x, y, steps=2, lr=0.05):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, x), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - lr * g for (name, p), g in zip(params.items(), grads, strict=True)}
    return params


for _ in range(3):
    meta.zero_grad()
    total = 0.0
    for _ in range(2):
        phase, height = torch.rand(1) * 3, torch.rand(1) + 0.5
        x = torch.rand(10, 1) * 6 - 3
        y = height * torch.sin(x + phase)
        fast = adapt(dict(model.named_parameters()), x[:5], y[:5])
        outer = F.mse_loss(functional_call(model, fast, x[5:]), y[5:]) / 2
        outer.backward()
        total += outer.item()
    meta.step()
    print(total.hex())
