"""A saliency map of an input that the model gets detached."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
image = torch.rand(1, 4, requires_grad=True)
normalised = (image.detach() - 0.5) / 0.25
score = model(normalised)[0, 1]
(saliency,) = torch.autograd.grad(score, image)
# expect: GI301 read=9 detached=9 backward=11
