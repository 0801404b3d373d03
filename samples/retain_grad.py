"""A result has no `.grad` after backward unless it asks for one with `retain_grad()`.

Try: gradinspect trace samples/retain_grad.py
"""

import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
square = x**2
cube = square**3
cube.retain_grad()
cube.sum().backward()

print("dcube/dx = 6 x^5 =", x.grad.tolist())
print("kept for cube:", cube.grad.tolist())
