"""A gradient that nobody else holds becomes .grad without a copy."""

import torch

pointers = {}
weight = torch.nn.Parameter(torch.ones(1000))
bias = torch.nn.Parameter(torch.ones(1000))


class Remember(torch.autograd.Function):
    """The identity; backward makes a buffer of its own and remembers where it lies."""

    @staticmethod
    def forward(ctx, value, name):
        ctx.name = name
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        made = gradient.clone()
        pointers[ctx.name] = made.data_ptr()
        return made, None


for _ in range(3):
    weight.grad = bias.grad = None
    (Remember.apply(weight, "weight") * 2 + Remember.apply(bias, "bias")).sum().backward()
    print(weight.grad.data_ptr() == pointers["weight"], bias.grad.data_ptr() == pointers["bias"])
    (Remember.apply(weight, "weight") * 2).sum().backward()
    print(weight.grad.data_ptr() == pointers["weight"], weight.grad._version)
