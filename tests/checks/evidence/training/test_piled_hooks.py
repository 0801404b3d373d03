"""Hooks that become more, and the line that registers them."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.piled_hooks import Pile, PiledHooks, line_of_hook, piles_by_line


def take_half(grad: torch.Tensor) -> torch.Tensor:
    """Be a hook."""
    return grad * 0.5


def after_counts(counts: Sequence[int]) -> tuple[list[Pile], str | None]:
    """Let backward find so many equal hooks at each call; one of another kind is made each time, too."""
    model, log = nn.Linear(2, 1), PiledHooks()
    handles: list[Any] = []
    for call, count in enumerate(counts):
        model.bias.register_hook(torch.neg).remove()
        while len(handles) > count:
            handles.pop().remove()
        while len(handles) < count:
            handles.append(model.weight.register_hook(take_half))
        log.begin([(model.weight, "weight")], [model], 10 + call)
    return log.found(), log.waits()


@pytest.mark.parametrize(
    ("counts", "found", "waits"),
    [
        ([1, 2, 3], 3, False),
        ([1, 2, 2, 3], 3, False),
        ([0, 1, 2], None, True),
        ([1, 1, 2], None, True),
        ([1, 2, 2, 2], None, True),
        ([1, 2, 2, 2, 2], None, False),
        ([1, 2, 1, 2], None, True),
        ([1, 2, 1, 2, 3], 3, False),
        ([1, 2, 3, 1], None, False),
        ([1, 3, 5], 5, False),
        ([2, 2, 2], None, False),
    ],
)
def test_two_increases_and_no_decrease_are_a_pile(counts: list[int], found: int | None, *, waits: bool) -> None:
    """After one, another is waited for; those that were removed begin anew."""
    piles, said = after_counts(counts)

    assert [(pile.name, pile.kind, pile.count) for pile in piles] == (
        [] if found is None else [("weight", "tensor", found)]
    )
    assert said == ("weight had been given one more hook" if waits else None)
    assert [pile.backward for pile in piles] == ([] if found is None else [9 + len(counts)])


def test_hooks_of_each_kind_are_counted_apart() -> None:
    """On tensors, after they have accumulated, and on modules, which have names of their own."""
    inner = nn.Linear(2, 1)
    model, log = nn.Sequential(inner), PiledHooks()

    def forward(*_arguments: object) -> None:
        """Be a hook."""

    for call in range(3):
        inner.weight.register_hook(take_half)
        inner.bias.register_post_accumulate_grad_hook(forward)
        inner.register_forward_hook(forward)
        model.register_full_backward_hook(forward)
        if call < 2:
            inner.register_forward_pre_hook(take_half)
        log.begin([(inner.weight, ""), (inner.bias, "bias")], [model], None)

    assert [(pile.name, pile.kind, pile.hook.rpartition(".")[2], pile.count) for pile in log.found()] == [
        ("a tensor", "tensor", "take_half", 3),
        ("bias", "accumulated", "forward", 3),
        ("Sequential", "backward", "forward", 3),
        ("0", "forward", "forward", 3),
    ]


class Scale:
    """A hook with a state."""

    def __call__(self, grad: torch.Tensor) -> torch.Tensor:
        """Be a hook."""
        return grad * 0.5


class Owner:
    """An object that has one."""

    def method(self, grad: torch.Tensor) -> torch.Tensor:
        """Be another."""
        return grad * 0.5


def lines_of(*registers: Any) -> list[int | None]:
    """Register a hook in each of these ways, three times, and return the lines found."""
    found = []
    for register in registers:
        weight, log = nn.Parameter(torch.ones(2)), PiledHooks()
        for _ in range(3):
            register(weight)
            log.begin([(weight, "weight")], [], None)
        found += [None if (line := line_of_hook(pile)) is None else line.line for pile in log.found()]
    return found


def by_lambda(weight: torch.Tensor) -> None:
    """Write the hook where it is registered."""
    weight.register_hook(lambda grad: grad * 0.5)


def by_other_lambda(weight: torch.Tensor) -> None:
    """Do so on another line."""
    weight.register_hook(lambda grad: grad * 0.25)


def by_object(weight: torch.Tensor) -> None:
    """Make an object for each."""
    weight.register_hook(Scale())


def by_method(weight: torch.Tensor) -> None:
    """Pass a method of an object by a keyword."""
    weight.register_hook(hook=Owner().method)


def by_alias(weight: torch.Tensor) -> None:
    """Register where no call says so."""
    register = weight.register_hook
    register(lambda grad: grad * 0.75)


def of_torch(weight: torch.Tensor) -> None:
    """Register a function without code where no call says so."""
    register = weight.register_hook
    register(torch.sigmoid)


def of_package(weight: torch.Tensor) -> None:
    """Do so with one of a package, which is written in Python."""
    register = weight.register_hook
    register(nn.functional.softsign)


def test_the_line_of_a_hook() -> None:
    """Of the call that contains it or names it; else its own, if it is the program's."""
    ways = (by_lambda, by_other_lambda, by_object, by_method, by_alias)

    assert lines_of(*ways) == [way.__code__.co_firstlineno + (3 if way is by_alias else 2) for way in ways]
    assert lines_of(of_torch, of_package) == [None, None]


def test_piles_are_grouped_by_their_line() -> None:
    """Those without one are dropped."""
    log, weights = PiledHooks(), [nn.Parameter(torch.ones(2)) for _ in range(3)]
    for _ in range(3):
        for weight in weights[:2]:
            by_lambda(weight)
        of_torch(weights[2])
        log.begin([(weight, f"w{place}") for place, weight in enumerate(weights)], [], None)
    assert len(log.found()) == 3
    ((line, piles),) = piles_by_line(log.found())

    assert line.line == by_lambda.__code__.co_firstlineno + 2
    assert [pile.name for pile in piles] == ["w0", "w1"]
