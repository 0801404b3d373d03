"""Arguments of custom Functions are kept without keeping the program's objects alive."""

import gc
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pytest
import torch

from gradinspect.api.live.checking import check
from gradinspect.checks.evidence.custom_functions.kept_arguments import (
    CannotBeKeptError,
    GoneError,
    given_again,
    kept,
)


class Named(NamedTuple):
    """A tuple with fields."""

    scale: float
    parts: list[int]


class Block:
    """An object of the program."""

    def run(self) -> int:
        """Return a number."""
        return 1


@pytest.mark.parametrize(
    "value",
    [
        3, 2.5, "text", b"bytes", None, ..., torch.float32, torch.Size([2, 3]), np.float32(2.0), Named(1.0, [1, 2]),
        {"a": [1, (2, {3})]}, frozenset((1, 2)),
    ],
)  # fmt: skip
def test_what_holds_nothing_is_given_again(value: object) -> None:
    """And has the same class."""
    again = given_again(kept(value))

    assert again == value
    assert type(again) is type(value)


def test_containers_and_tensors_are_copied() -> None:
    """What the program does with them later is not seen, and a graph is not held."""
    tensor = torch.ones(2, requires_grad=True)
    given = {"a": [tensor * 2]}
    again = given_again(kept(given))
    given["a"].append(tensor)

    assert list(map(torch.Tensor.tolist, again["a"])) == [[2.0, 2.0]]
    assert (again["a"][0].requires_grad, again["a"][0].grad_fn) == (True, None)


def test_objects_are_held_weakly() -> None:
    """Also a method of one, and one within a container; a closure holds what it computes with."""

    def keep() -> list[Any]:
        block = Block()
        waiting = [kept(block), kept(block.run), kept([block]), kept(lambda: block)]
        assert given_again(waiting[0]) is block
        assert given_again(waiting[1])() == 1
        return waiting

    waiting = keep()
    gc.collect()

    for one in waiting:
        with pytest.raises(GoneError):
            given_again(one)


def test_a_function_without_a_closure_is_kept() -> None:
    """It holds nothing but its code."""
    waiting: Callable[[int], int] = kept(lambda number: number + 1)
    gc.collect()

    assert given_again(waiting)(1) == 2


def test_what_is_large_or_has_no_weak_references_is_refused() -> None:
    """The call is then passed over."""
    for value in (list(range(2_000)), [torch.zeros(30_000)]):
        with pytest.raises(CannotBeKeptError):
            kept(value)
    with pytest.raises(TypeError):
        kept(iter([]))


class Kept(torch.autograd.Function):
    """Keeps what it is given."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, metadata: Any) -> torch.Tensor:
        """Double."""
        ctx.given = metadata
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Use the formula."""
        return grad * 2, None


class Metadata(dict[str, Any]):
    """A dict that may be referred to weakly."""


def test_a_cycle_through_an_argument_is_freed() -> None:
    """The output is in what the Function was given, and the collector frees both, as without us."""
    gone = []

    def step() -> None:
        x = torch.ones(2, requires_grad=True)
        metadata = Metadata()
        metadata["out"] = Kept.apply(x, metadata)
        metadata["out"].sum().backward()
        waiting = ref(metadata)
        del metadata
        gc.collect()
        gone.append(waiting() is None)

    found = check(step, steps=2)

    assert gone == [True, True]
    assert list(found) == []
