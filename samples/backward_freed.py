"""Without `retain_graph` the first backward frees the saved tensors, and a second one has nothing to compute with.

Try: gradinspect saved samples/backward_freed.py --at end
"""

import torch

x = torch.tensor([2.0, 2.0], requires_grad=True)
z = torch.tensor([4.0, 4.0], requires_grad=True)
loss = (x**2 + z**3).sum()
loss.backward()

try:
    loss.backward()
except RuntimeError as error:
    print("second backward:", str(error).split(" (", maxsplit=1)[0])
print("x.grad is from the first:", x.grad.tolist())
