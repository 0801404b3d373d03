"""Listeners of optimizer steps."""

from typing import Any

import torch
from torch import nn

from gradinspect.torch_api.hooks import hide_hooks, optimizer_steps, show_hooks


def test_a_listener_that_fails_is_noted_and_the_others_are_called() -> None:
    """The program does not see it, and steps; afterwards nobody listens."""
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    weight.grad = torch.ones(2)
    noted: list[str] = []
    heard: list[str] = []

    def failing(*_call: Any) -> None:
        raise ValueError

    with (
        optimizer_steps(before=failing, note=lambda error: noted.append(type(error).__name__)),
        optimizer_steps(
            before=lambda *_: heard.append("before"), after=lambda *_: heard.append("after"), note=lambda _error: None
        ),
    ):
        optimizer.step()
    optimizer.step()

    assert noted == ["ValueError"]
    assert heard == ["before", "after"]
    assert weight.tolist() == [-1.0, -1.0]


def test_a_listener_that_is_added_while_hooks_are_hidden_is_hidden_too() -> None:
    """torch.compile guards on the number of hooks: one that comes inside compiled code would compile it again."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=1.0)
    heard: list[str] = []

    hide_hooks()
    with optimizer_steps(after=lambda *_: heard.append("after"), note=lambda _error: None):
        optimizer.step()
        assert not heard
        show_hooks()
        optimizer.step()
    optimizer.step()

    assert heard == ["after"]
