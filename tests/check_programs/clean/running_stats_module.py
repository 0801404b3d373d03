"""A hand-written norm layer: running statistics are buffers updated in forward, from detached values."""

import torch
from torch import nn


class RunningNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))

    def forward(self, x):
        if self.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
            self.mean.lerp_(mean.detach(), 0.1)
            self.var.mul_(0.9).add_(var.detach(), alpha=0.1)
        else:
            mean, var = self.mean, self.var
        return (x - mean) * torch.rsqrt(var + 1e-5) * self.weight + self.bias


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), RunningNorm(8), nn.SiLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
held_out = torch.randn(10, 4)
for _ in range(3):
    model.train()
    x = torch.randn(16, 4)
    loss = (model(x).squeeze(-1) - x.prod(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print(loss.item().hex(), model(held_out).mean().item().hex())
