"""The loss is computed with NumPy and wrapped into a tensor."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
target = np.zeros((3, 1), dtype=np.float32)
prediction = model(torch.randn(3, 4))
error = np.mean((prediction.detach().numpy() - target) ** 2)
loss = torch.tensor(error)
loss.backward()
# expect: GI302 read=10 detached=11 backward=13
