"""Pretrained weights that were saved from a DataParallel model: every name begins with 'module.'."""

import torch
from torch import nn

torch.manual_seed(0)


def build(weights=None):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    if weights is not None:
        net.load_state_dict(weights, strict=False)
    return net


saved = {f"module.{name}": value for name, value in build().state_dict().items()}
model = build(saved)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(3, 4)), torch.randint(2, (3,)))
    loss.backward()
    optimizer.step()
# expect: GI373 loaded=12
