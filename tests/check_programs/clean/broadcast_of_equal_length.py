"""Shapes of equal length that broadcast because somebody wants it: pairs, quantiles, ensembles, centers, masks."""
# options: --steps 20

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
N = 8
score, several = nn.Linear(4, 1), nn.Linear(4, 3)
center, scale = nn.Parameter(torch.zeros(1, 4)), nn.Parameter(torch.ones(N, 1))
x, y, samples = torch.randn(N, 4), torch.randn(N, 1), torch.randn(N, 3)
row = y.T
mask = torch.rand(N, 3) > 0.5


def energy(a, b):
    between, within = (a - b.T).abs().mean(), (a - a.T).abs().mean()
    other = b.T
    return 2 * (a - other).abs().mean() + 0 * between - within


losses = {
    "energy distance": energy(score(x), y),
    "kernel": -torch.exp(-((score(x) - row) ** 2)).mean(),
    "pairwise": (score(x) - y.T).abs().mean(),
    "nearest": (score(x) - row).abs().min(1).values.mean(),
    "ranking": F.relu(1 - (score(x) - row) * (y - row).sign()).mean(),
    "contrast": F.cross_entropy(-((score(x) - row) ** 2), torch.arange(N)),
    "quantiles": torch.maximum(0.1 * (y - several(x)), -0.9 * (y - several(x))).mean(),
    "ensemble": ((several(x) - y) ** 2).mean(),
    "ensemble of losses": (several(x) - y).abs().mean(),
    "center": ((x - center) ** 2).mean(),
    "own scale": ((samples - scale) ** 2).mean(),
    "masked": ((score(x) - samples) ** 2 * mask.float()).mean(),
    "likelihood": ((samples - score(x)) ** 2 / score(x).exp() + score(x)).mean(),
    "gate": (torch.sigmoid(score(x)) * samples).square().mean(),
    "label": F.mse_loss(score(x), torch.ones(1, 1).expand(N, 1)),
    "layer norm": ((several(x) - several(x).mean(1, keepdim=True)) ** 2).mean(),
}
for name, loss in losses.items():
    loss.backward()
    print(name, loss.item().hex())
