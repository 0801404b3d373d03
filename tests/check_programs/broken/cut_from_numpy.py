"""Features are whitened in NumPy and come back by torch.from_numpy, so the encoder does not learn."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    features = encoder(torch.randn(16, 4)).detach().numpy()
    features = (features - features.mean(0)) / np.maximum(features.std(0), 1e-3)
    whitened = torch.from_numpy(features)
    loss = head(whitened).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI301 read=11 detached=11 used=14
