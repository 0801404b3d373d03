"""Looks at which memory a gradient lies in: the engine takes buffers over where nobody else holds them."""

import fingerprint
import torch
from torch import nn

torch.manual_seed(39)
given = torch.ones(3)
for _ in range(3):
    x = torch.zeros(3, requires_grad=True)
    y = x.view_as(x)
    y.backward(given, retain_graph=True)
    first = x.grad
    y.backward(given)
    print(x.grad is first, x.grad.data_ptr() == given.data_ptr(), x.grad._version)
addresses = []


class Remember(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        made = gradient * 2
        addresses.append(made.data_ptr())
        return made


for _ in range(3):
    x = torch.zeros(5, requires_grad=True)
    Remember.apply(x).sum().backward()
    print(x.grad.data_ptr() == addresses[-1], x.grad._version)
    x = torch.zeros(5, requires_grad=True)
    z = Remember.apply(x)
    (z.sum() + z.prod()).backward()
    print(x.grad.data_ptr() == addresses[-1], x.grad._is_view(), x.grad.is_contiguous(), x.grad.stride())
model = nn.Linear(4, 4)
for set_to_none in (True, False, False, True):
    model(torch.randn(2, 4)).sum().backward()
    kept = model.weight.grad
    model.zero_grad(set_to_none=set_to_none)
    print(model.weight.grad is kept, kept._version)
fingerprint.show(model)
