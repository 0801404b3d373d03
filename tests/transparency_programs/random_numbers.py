import random

import fingerprint
import numpy as np
import torch
from torch import nn

torch.manual_seed(31)
random.seed(31)
np.random.seed(31)
model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.RReLU(), nn.Linear(6, 2))
for _ in range(4):
    with torch.random.fork_rng():
        noise = torch.randn(3, 6)
    loss = model(torch.randn(3, 6) + noise).square().mean()
    loss.backward()
    print(f"{loss.item():.9f}", random.random(), np.random.rand())
print(torch.initial_seed(), torch.rand(2).tolist())
fingerprint.show(model)
