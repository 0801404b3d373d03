"""Gradients cleared in every way that works, with fused, foreach and capturable optimizers, one after the other."""

import torch
from torch import nn

torch.manual_seed(0)


def by_none(model, optimizer):
    for p in model.parameters():
        p.grad = None


def by_hand(model, optimizer):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.detach_()
            p.grad.zero_()


def by_data(model, optimizer):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.data.zero_()


WAYS = [
    (lambda model, optimizer: optimizer.zero_grad(set_to_none=False), {"foreach": True}),
    (lambda model, optimizer: model.zero_grad(), {"fused": True}),
    (by_none, {}),
    (by_hand, {"foreach": False}),
    (by_data, {"foreach": True}),
]
models = [nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)) for _ in WAYS]
optimizers = [torch.optim.AdamW(m.parameters(), **options) for m, (_, options) in zip(models, WAYS, strict=True)]
for _ in range(3):
    losses = []
    for model, optimizer, (clear, _) in zip(models, optimizers, WAYS, strict=True):
        clear(model, optimizer)
        losses.append(model(torch.randn(5, 4)).square().mean())
    total = sum(losses)
    total.backward()
    for optimizer in optimizers:
        optimizer.step()
    print(total.item().hex())
# options: --steps 3
