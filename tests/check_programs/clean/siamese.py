"""SimSiam: the target of each view is the detached projection of the other one."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
projector = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Linear(8, 4))
predictor = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
optimizer = torch.optim.SGD([*projector.parameters(), *predictor.parameters()], lr=0.05)
for _ in range(3):
    first, second = projector(torch.randn(5, 6)), projector(torch.randn(5, 6))
    loss = -F.cosine_similarity(predictor(first), second.detach()).mean()
    loss = loss - F.cosine_similarity(predictor(second), first.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
