"""`torch.autograd.grad` returns gradients instead of adding them to `.grad`; without a `backward` it is shown.

Try: gradinspect trace samples/autograd_grad.py
"""

import torch

x = torch.tensor(2.0, requires_grad=True)
y = torch.tensor(3.0, requires_grad=True)
z = x**2 + y
dx, dy = torch.autograd.grad(z, (x, y))

print("returned:", dx.item(), dy.item())
print("x.grad is still", x.grad)
