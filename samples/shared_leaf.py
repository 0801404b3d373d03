"""One leaf used twice: both paths of `a * (a + 2)` end in the same AccumulateGrad node.

Try: gradinspect trace samples/shared_leaf.py
"""

import torch

a = torch.tensor([3.0], requires_grad=True)
b = a * (a + 2)
b.backward()

print("db/da = 2a + 2 =", a.grad.item())
