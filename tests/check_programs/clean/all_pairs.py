"""All pairs, because somebody wants them: distances, ranking, contrast, attention, outer products, biases."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
N = 8
net, score = nn.Linear(4, N), nn.Linear(4, 1)
x, y, anchors = torch.randn(N, 4), torch.randn(N), torch.randn(N)


def distances(a, b):
    a = a.unsqueeze(1)
    return (a - b).abs()


losses = {
    "bias": ((net(x) + anchors) ** 2).mean(),
    "pairwise": ((score(x).squeeze(1)[:, None] - y) ** 2).mean(),
    "in two lines": distances(score(x).squeeze(1), anchors).mean(),
    "chamfer": (score(x) - anchors).abs().min(1).values.mean(),
    "ranking": F.relu(1 - (score(x) - score(x).squeeze(1)) * (y[:, None] - y).sign()).mean(),
    "masked pairs": ((score(x) - y) * (y[:, None] > y).float()).sum(),
    "contrast": F.cross_entropy(F.normalize(net(x)) @ F.normalize(net(x)).T, torch.arange(N)),
    "outer": (score(x) * torch.linspace(0, 1, N)).logsumexp(1).mean(),
    "columns": (net(x) - y).pow(2).mean(),
    "attention": (
        F.softmax(net(x) + torch.zeros(N, N).masked_fill(torch.ones(N, N).triu(1).bool(), -1e9), -1) @ x
    ).sum(),
}
for name, loss in losses.items():
    loss.backward()
    print(name, loss.item().hex())
