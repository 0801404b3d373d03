"""A saliency map of an input that was given its batch dimension after requires_grad."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
image = torch.rand(3, 2, 2, requires_grad=True)
batch = image.unsqueeze(0)
model(batch)[0, 1].backward()
saliency = batch.grad
# expect: GI305 made=9 backward=10 read=11
