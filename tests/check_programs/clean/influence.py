"""Influence functions: train first, then solve with Hessian-vector products; nothing there touches .grad."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x, y = torch.randn(24, 3), torch.randint(0, 2, (24,)).float()
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


def loss_of(rows):
    return F.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), y[rows])


def gradient(rows, create_graph=False):
    grads = torch.autograd.grad(loss_of(rows), list(model.parameters()), create_graph=create_graph)
    return torch.cat([g.flatten() for g in grads])


everyone = torch.arange(20)
for _ in range(5):
    loss = loss_of(everyone)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())

test = gradient(torch.arange(20, 24))
estimate = test.clone()
for _ in range(5):  # LiSSA: each round has its own graph
    g = gradient(everyone, create_graph=True)
    product = torch.autograd.grad(g @ estimate, list(model.parameters()))
    estimate = test + 0.99 * estimate - torch.cat([p.flatten() for p in product])
for i in range(3):
    print(i, (-(estimate @ gradient(torch.tensor([i])))).item().hex())
