"""A gamma curve of a picture with black pixels."""

import torch

picture = torch.tensor([0.0, 0.25, 1.0], requires_grad=True)
curve = picture ** (1 / 2.2)
loss = curve.mean()
loss.backward()
# expect: GI501 made=6 backward=8
