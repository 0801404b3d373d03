"""Loops over parameters assign their own variable, and read it; or write into it, and assign that."""

import copy
from collections.abc import Iterator

import torch
from torch import nn


def largest(model: nn.Module) -> float:
    worst = 0.0
    for p in model.parameters():
        p = p.detach().abs()
        worst = max(worst, p.max().item())
    return worst


def doubled(model: nn.Module) -> Iterator[torch.Tensor]:
    for p in model.parameters():
        p = p.detach() * 2
        yield p


def penalty(model: nn.Module) -> torch.Tensor:
    total = torch.zeros(())
    for p in model.parameters():
        p = p.flatten()
        total = total + (p * p).sum()
    return total


def follow(average: nn.Module, model: nn.Module) -> None:
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow = slow.mul_(0.9).add_(fast, alpha=0.1)
    for p in model.parameters():
        for _ in range(2):
            worst = p.abs().max().item()
            p = p * 0.5
        assert worst >= 0


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
average, kept = copy.deepcopy(model), {}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    ((model(x) - x[:, :2]).square().mean() + 1e-4 * penalty(model)).backward()
    optimizer.step()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            value = value.clone()
            kept[name] = value
        follow(average, model)
    largest(model)
    list(doubled(model))
