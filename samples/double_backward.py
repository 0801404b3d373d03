"""A gradient of a gradient: `create_graph=True` makes the first backward record a graph of its own.

Try: gradinspect trace samples/double_backward.py
"""

import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
direction = torch.tensor([1.0, -1.0])
(slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
(slope * direction).sum().backward()

print("first derivative 3x^2:", slope.tolist())
print("Hessian times direction:", x.grad.tolist())
