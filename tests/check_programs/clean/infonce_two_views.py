"""InfoNCE on two views: the diagonal is set to minus infinity on purpose, and no row is masked whole."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
N = 6
encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))
log_temperature = nn.Parameter(torch.tensor(0.2).log())
optimizer = torch.optim.Adam([*encoder.parameters(), log_temperature], lr=3e-3)


def nt_xent(z1, z2, temperature):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    similarity = z @ z.T / temperature
    itself = torch.eye(2 * N, dtype=torch.bool)
    similarity = similarity.masked_fill(itself, float("-inf"))
    positives = torch.arange(2 * N).roll(N)
    return F.cross_entropy(similarity, positives)


data = torch.randn(N, 10)
for _ in range(3):
    view1, view2 = data + 0.1 * torch.randn_like(data), data + 0.1 * torch.randn_like(data)
    loss = nt_xent(encoder(view1), encoder(view2), log_temperature.exp())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
