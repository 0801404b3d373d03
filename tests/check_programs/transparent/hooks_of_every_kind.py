"""Backward hooks of every kind, a reentrant checkpoint, an optimizer inside backward, and what they print."""

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)


def learn(_parameter):
    """Step in the middle of backward."""
    optimizer.step()
    optimizer.zero_grad()


first.bias.register_post_accumulate_grad_hook(learn)
second.register_full_backward_hook(lambda module, inputs, outputs: print("module", outputs[0].norm().item()))
for _ in range(3):
    hidden = checkpoint(first, torch.randn(2, 4, requires_grad=True), use_reentrant=True)
    hidden.register_hook(lambda gradient: print("tensor", gradient.sum().item(), torch.is_grad_enabled()))
    second(hidden).pow(2).sum().backward()
print(first.weight, second.weight.grad, first.weight._version)
