"""Calling nodes by hand: each one is a function, but summing a broadcast gradient back to shape is the engine's job.

Try: gradinspect saved samples/manual_backward.py
"""

import torch

torch.manual_seed(6)
x = torch.randn(4, 4, requires_grad=True)
y = torch.tensor(2.0, requires_grad=True)
loss = (x * y).sum()

sum_node = loss.grad_fn
multiply_node, _ = sum_node.next_functions[0]
grad_product = sum_node(torch.tensor(1.0))
grad_x, grad_y = multiply_node(grad_product)
print("as the node returns it:", tuple(grad_y.shape), "for a leaf of shape", tuple(y.shape))
grad_y = grad_y.sum_to_size(y.shape)

loss.backward()
print("same as the engine:", torch.equal(grad_x, x.grad) and torch.equal(grad_y, y.grad))
