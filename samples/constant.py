"""A factor that needs no gradient leaves an empty place (None) among the edges, so positions keep their meaning.

Try: gradinspect trace samples/constant.py
"""

import torch

x = torch.tensor(1.0, requires_grad=True)
y = torch.tensor(2.0)
z = x * y

for name, tensor in {"x": x, "y": y, "z": z}.items():
    print(f"{name}: requires_grad={tensor.requires_grad} is_leaf={tensor.is_leaf}")
print("the edge to y:", z.grad_fn.next_functions[1])
z.backward()
print("dz/dx =", x.grad.item())
