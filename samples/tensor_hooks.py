"""Hooks on tensors run when their gradient is ready, and may replace it: here one prints it and halves it.

Try: gradinspect trace samples/tensor_hooks.py
"""

import torch


def print_grad(grad):
    print("in the hook:", grad.tolist())
    return grad / 2


w = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
w.register_hook(print_grad)
loss = ((w - 1) ** 2).mean()

print("before backward")
loss.backward()
print("after backward:", w.grad.tolist())
