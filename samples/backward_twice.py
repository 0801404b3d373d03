"""`retain_graph=True` keeps the saved tensors, so the same graph can run again; gradients add up in `.grad`.

Try: gradinspect saved samples/backward_twice.py --backward 2
"""

import torch

x = torch.tensor([2.0, 2.0], requires_grad=True)
z = torch.tensor([4.0, 4.0], requires_grad=True)
loss = (x**2 + z**3).sum()

for run in (1, 2):
    loss.backward(retain_graph=True)
    print(f"after backward {run}: x.grad={x.grad.tolist()} z.grad={z.grad.tolist()}")
