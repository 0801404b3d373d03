"""A function deletes its variables: what they held is gone at once, as no copy of the function's variables is left."""

import gc
import weakref

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
gc.disable()


class Scale(torch.autograd.Function):
    """Keeps its input as an attribute."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


def is_gone(reference):
    return reference() is None


def train(model, optimizer, number):
    scale, noise = 0.5 + number, [0.1, 0.2]
    x = torch.randn(6, 4)
    hidden = model[:2](x)
    hidden.register_hook(lambda gradient: gradient * 2)
    out = checkpoint(model[2:], Scale.apply(hidden, scale), use_reentrant=False)
    loss = (out - torch.tensor(noise)[0]).pow(2).mean() * scale
    optimizer.zero_grad()
    loss.backward()
    held = [weakref.ref(one) for one in (x, hidden, out, loss)]
    del x, hidden, out, loss
    print(number, "before the step", [is_gone(one) for one in held])
    optimizer.step()
    print(number, "after it", [is_gone(one) for one in held])
    try:
        wrong = torch.ones(3, 5) @ model(torch.randn(6, 4))
    except RuntimeError as error:
        print(type(error).__name__)
    wrong = model(torch.randn(6, 4)).sum()
    (gradient,) = torch.autograd.grad(wrong, model[0].weight)
    held = [weakref.ref(one) for one in (wrong, gradient)]
    del wrong, gradient
    print(number, "after a gradient", [is_gone(one) for one in held])


def hooked_graph():
    source, sign = torch.ones(2, requires_grad=True), nn.Identity()
    doubled = source * 2
    node = doubled.grad_fn
    doubled.register_hook(lambda gradient: sign(gradient) * (node is not None))
    return doubled.sum(), weakref.ref(sign)


def hooked():
    """A hook whose closure holds the node it belongs to is collected with the rest of the graph."""
    end, reference = hooked_graph()
    end.backward(retain_graph=True)
    gc.collect()
    del end
    gc.collect()
    print("hooked", is_gone(reference))


net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
adam = torch.optim.Adam(net.parameters(), lr=0.01)
hooked()
for index in range(4):
    train(net, adam, index)
hooked()
