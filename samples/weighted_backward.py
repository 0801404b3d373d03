"""A non-scalar result needs a weight for each element: backward computes the weighted sum of their gradients.

Try: gradinspect trace samples/weighted_backward.py
"""

import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2

y.backward(torch.tensor([1.0, 0.5]))
print("1.0 * 2x[0], 0.5 * 2x[1] =", x.grad.tolist())
