"""Hooks on nodes belong to one graph: the second graph over the same parameter has none of them.

Try: gradinspect trace samples/node_hooks.py --backward 2
"""

import torch


def print_parameter_grad(grad):
    print("  gradient of w:", grad.tolist())


def print_node_grads(grad_inputs, grad_outputs):
    print("  AddBackward0 got", grad_outputs[0].tolist(), "and gives", grad_inputs[0].tolist())


w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
w.register_hook(print_parameter_grad)

print("first graph")
y = w + 1
y.grad_fn.register_hook(print_node_grads)
y.sum().backward()

print("second graph")
z = w + 1
z.sum().backward()
