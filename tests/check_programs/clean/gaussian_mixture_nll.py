"""A mixture fitted by its likelihood: far points would underflow in exp, so the sum is a logsumexp."""

import math

import torch
from torch import nn

torch.manual_seed(0)
data = torch.cat([torch.randn(20, 2) - 40, torch.randn(20, 2) + 40])


class Mixture(nn.Module):
    def __init__(self, k, dim):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k))
        self.mean = nn.Parameter(torch.randn(k, dim))
        self.log_std = nn.Parameter(torch.zeros(k, dim))

    def log_prob(self, x):
        z = (x[:, None, :] - self.mean) * (-self.log_std).exp()
        per_component = (-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
        return torch.logsumexp(self.logits.log_softmax(0) + per_component, dim=1)


model = Mixture(3, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    nll = -model.log_prob(data).mean()
    nll.backward()
    optimizer.step()
    print(step, nll.item().hex())
