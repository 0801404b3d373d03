"""A trunk gives features in eval mode after each epoch, and is trained with the rest of the model."""

import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
model = nn.Sequential(trunk, nn.Linear(8, 2))
trunk.eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model.train()
    for _ in range(2):
        loss = model(torch.randn(16, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    trunk.eval()
    with torch.no_grad():
        trunk(torch.randn(3, 4))
