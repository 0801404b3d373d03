"""A weight is clipped through `.data` before backward."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w * w).sum()
w.data.clamp_(max=0.5)
loss.backward()
# expect: GI103 saved=6 written=7
