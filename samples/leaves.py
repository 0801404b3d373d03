"""Leaves and results: tensors you make are leaves without a `grad_fn`, only results are in the graph.

Try: gradinspect trace samples/leaves.py
"""

import torch

scale = torch.tensor(2.0, requires_grad=True)
rate = torch.tensor(0.5, requires_grad=True)
offset = torch.tensor(1.0, requires_grad=True)
exponent = scale * rate
growth = exponent.exp()
total = growth + offset

for name, tensor in {"scale": scale, "exponent": exponent, "growth": growth, "total": total}.items():
    print(f"{name:8} is_leaf={tensor.is_leaf!s:5} grad_fn={tensor.grad_fn and tensor.grad_fn.name()}")
total.backward()
print("gradients:", [round(leaf.grad.item(), 4) for leaf in (scale, rate, offset)])
