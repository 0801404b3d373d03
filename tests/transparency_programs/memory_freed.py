"""Counts the storages that are alive during and after a step, as a test for leaks does."""

import gc
import weakref

import fingerprint
import torch
from torch import nn

torch.manual_seed(30)
references = []


class Track(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.clone()
        ctx.save_for_backward(out)
        references.append(weakref.ref(out.untyped_storage()))
        return out

    @staticmethod
    def backward(ctx, gradient):
        (out,) = ctx.saved_tensors
        return gradient * out


gc.disable()
model = nn.Linear(4, 4)
for _ in range(4):
    references.clear()
    h = model(torch.randn(2, 4))
    for _ in range(3):
        h = Track.apply(h)
    loss = h.sum()
    del h
    print("before", sum(reference() is not None for reference in references))
    loss.backward()
    print("after", sum(reference() is not None for reference in references))
    del loss
    print("at last", sum(reference() is not None for reference in references))
gc.enable()
fingerprint.show(model)
