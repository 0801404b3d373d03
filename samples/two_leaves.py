"""Reading a small graph: `x*z + x + z` is one multiplication and two additions over two leaves.

Try: gradinspect export samples/two_leaves.py -o two_leaves.svg
"""

import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
z = torch.tensor([3.0, 4.0], requires_grad=True)
y = x * z + x + z
y.sum().backward()

print("dy/dx = z + 1 =", x.grad.tolist())
print("dy/dz = x + 1 =", z.grad.tolist())
