"""Optimizers that step inside backward, by the code that a plan prints."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.analyses.planning.code import STEP_IN_BACKWARD, stepping_code

OPTIMIZERS: dict[str, Callable[[Iterable[Any]], torch.optim.Optimizer]] = {
    "AdamW": lambda groups: torch.optim.AdamW(groups, lr=0.1),
    "AdamW foreach": lambda groups: torch.optim.AdamW(groups, lr=0.1, foreach=True),
    "AdamW fused": lambda groups: torch.optim.AdamW(groups, lr=0.1, fused=True),
    "SGD": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True),
    "Adafactor": lambda groups: torch.optim.Adafactor(groups, lr=0.1),
    "RMSprop": lambda groups: torch.optim.RMSprop(groups, lr=0.1, momentum=0.9, centered=True),
    "NAdam": lambda groups: torch.optim.NAdam(groups, lr=0.1),
    "Rprop": lambda groups: torch.optim.Rprop(groups, lr=0.1),
}


def trained(make: Callable[[Iterable[Any]], torch.optim.Optimizer], *, steps_in_backward: bool) -> list[Any]:
    """Train a model whose weights are tied, with two groups and a schedule; return its parameters and rates."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.Linear(8, 16), nn.Linear(16, 4))
    model[3].weight = model[0].weight
    model[4].bias.requires_grad_(False)
    optimizer = make([{"params": model[:2].parameters(), "lr": 0.01}, {"params": model[2:][0].parameters()},
                      {"params": [model[3].bias, *model[4].parameters()]}])  # fmt: skip
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    if steps_in_backward:
        namespace: dict[str, Any] = {}
        exec(compile(stepping_code(), "pasted", "exec"), namespace)  # noqa: S102  # what is printed
        namespace[STEP_IN_BACKWARD](optimizer)
    for _ in range(4):
        model(torch.randn(5, 8)).square().mean().backward()
        assert all(parameter.grad is None for parameter in model.parameters()) or not steps_in_backward
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    states = [state["step"] for state in optimizer.state.values() if "step" in state]
    return [*(parameter.detach() for parameter in model.parameters()), *map(torch.as_tensor, states), optimizer]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_are_the_same_to_the_last_bit(name: str) -> None:
    """As are the numbers of steps, the rates and the groups."""
    *plain, first = trained(OPTIMIZERS[name], steps_in_backward=False)
    *changed, second = trained(OPTIMIZERS[name], steps_in_backward=True)

    assert len(plain) == len(changed)
    assert all(torch.equal(one, other) for one, other in zip(plain, changed, strict=True))
    assert [len(group["params"]) for group in first.param_groups] == [
        len(group["params"]) for group in second.param_groups
    ]
    assert [group["lr"] for group in first.param_groups] == [group["lr"] for group in second.param_groups]
