"""A network is pretrained, frozen, and unfrozen: with a new optimizer, with one that holds it, and in turns."""

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)


def fit(model: nn.Module, parameters: list[nn.Parameter]) -> None:
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(3):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()


def train() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    fit(model, list(model.parameters()))
    model[0].requires_grad_(False)
    fit(model, list(model[2].parameters()))
    model[0].requires_grad_(True)
    fit(model, [*model[0].parameters(), *model[2].parameters()])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(6):
        model[0].requires_grad_(number >= 2)
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
    return model


def play() -> None:
    made, judge = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    for_made, for_judge = (torch.optim.Adam(one.parameters(), lr=0.01) for one in (made, judge))
    for _ in range(4):
        judge.requires_grad_(True)
        (softplus(-judge(torch.randn(8, 2) + 2)) + softplus(judge(made(torch.randn(8, 2)).detach()))).mean().backward()
        for_judge.step()
        for_judge.zero_grad()
        judge.requires_grad_(False)
        softplus(-judge(made(torch.randn(8, 2)))).mean().backward()
        for_made.step()
        for_made.zero_grad()


play()
trained = train().requires_grad_(True)
for _ in range(3):
    trained(torch.randn(4, 4, requires_grad=True)).sum().backward()
