"""Hooks of each iteration that are removed or that die with their graph, and several of one kind from the start."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
for factor in (0.5, 2.0, 1.0):
    model[0].weight.register_hook(lambda grad, factor=factor: grad * factor)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
norms = []
for step in range(6):
    handles = [p.register_hook(lambda grad: norms.append(grad.norm().item())) for p in model[2].parameters()]
    handles.append(model[1].register_forward_hook(lambda _module, _inputs, output: output * 1.0))
    if step == 3:
        model[2].weight.register_post_accumulate_grad_hook(lambda p: norms.append(p.grad.norm().item()))
    optimizer.zero_grad()
    hidden = model[1](model[0](torch.ones(4, 3)))
    hidden.register_hook(lambda grad: grad.clamp(-1, 1))
    loss = (model[2](hidden) - 1).square().mean()
    loss.backward()
    optimizer.step()
    for handle in handles:
        handle.remove()
    print(loss.item().hex(), len(norms))
