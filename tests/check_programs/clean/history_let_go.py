"""Loops that look like growing ones: several heads on one trunk, lists of losses, the last loss, MAML, a GAN."""

import collections

import torch
from torch import nn

torch.manual_seed(0)
trunk, heads = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])

features = torch.tanh(trunk(torch.randn(8, 4)))
for head in heads:
    loss = head(features).pow(2).mean()
    loss.backward(retain_graph=True)
print(loss.item().hex())

features = torch.tanh(trunk(torch.randn(8, 4)))
losses = []
for head in heads:
    losses.append(head(features).pow(2).mean())
for loss in losses:
    loss.backward(retain_graph=True)

history, curve, recent = {}, [], collections.deque(maxlen=2)
for _ in range(2):
    batch_losses = []
    for head in heads:
        batch_losses.append(head(torch.tanh(trunk(torch.randn(8, 4)))).pow(2).mean())
    loss = sum(batch_losses)
    loss.backward()
    history["loss"] = loss
    curve.append(loss.item())
    recent.append(loss.detach())
print([value.hex() for value in curve])

weight = torch.randn(4, requires_grad=True)
for _ in range(2):
    fast = weight
    for _ in range(2):
        (step,) = torch.autograd.grad((fast**2).sum(), fast, create_graph=True)
        fast = fast - 0.1 * step
    fast.pow(2).sum().backward()
print(weight.grad.norm().item().hex())
