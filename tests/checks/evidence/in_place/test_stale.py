"""Saved tensors that were modified, in small programs that run in this process."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import func

import gradinspect as gi
from gradinspect.checks.evidence.in_place import stale
from gradinspect.graph import SavedValue
from gradinspect.recording.values.saved import raw_tensor

pytestmark = pytest.mark.slow


def written_as_it_is_made() -> object:
    """Save a result that the same operator wrote, and write to it twice."""
    y = (torch.ones(2, requires_grad=True) * 1).exp_()
    y.mul_(2)
    y.add_(1)
    return y.sum().backward()


def written_before_it_is_saved() -> object:
    """Write to a tensor, save it, and write to it again."""
    y = torch.ones(2, requires_grad=True) * 1
    y.mul_(2)
    z = y.square()
    y.add_(1)
    return z.sum().backward()


def saved_twice() -> object:
    """Save a tensor before and after a write."""
    y = torch.ones(2, requires_grad=True) * 1
    z = y.square()
    y.mul_(2)
    return (z + y.square()).sum().backward()


def written_before_only() -> object:
    """Write to a tensor, then save it."""
    y = torch.ones(2, requires_grad=True) * 1
    y.mul_(2)
    return y.square().sum().backward()


@pytest.mark.parametrize("reads_raw", [True, False])
@pytest.mark.parametrize(
    ("step", "found"),
    [
        (written_as_it_is_made, [(3, 4, "saved at version 1, now 3")]),
        (written_before_it_is_saved, [(5, "saved at version 1, now 2")]),
        (saved_twice, [(4, "saved at version 0, now 1")]),
        (written_before_only, []),
    ],
)
def test_only_writes_after_saving_modify(
    monkeypatch: pytest.MonkeyPatch, step: Callable[[], object], found: list[tuple[object, ...]], *, reads_raw: bool
) -> None:
    """Each of them is listed, with the versions, whether or not torch lets the saved tensor be read."""
    if not reads_raw:
        monkeypatch.setattr(stale, "can_read_raw", lambda: False)
    first = step.__code__.co_firstlineno
    findings = [one for one in gi.check(step, steps=1) if one.code == "GI101"]

    assert [
        (
            *(place.line - first for place in one.places if place.role == "written"),
            one.subjects[0].rpartition("(")[2].rstrip(")"),
        )
        for one in findings
    ] == found


def written_in(transform: Callable[..., Any], *arguments: torch.Tensor) -> None:
    """Write to what was saved, in a function that torch.func transforms."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = x.tanh()
        y.mul_(2)
        return y.sum()

    transform(loss)(*arguments)


def written_new_in(transform: Callable[..., Any], *arguments: torch.Tensor) -> None:
    """Write to what nobody has saved, in such a function."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        y.add_(x)
        y[0] = x[0] * 2
        return y.square().sum()

    transform(loss)(*arguments)


ONES = torch.ones(4, 3)
TRANSFORMS: list[tuple[Callable[..., Any], torch.Tensor]] = [
    (func.grad, ONES[0]),
    (func.jacrev, ONES[0]),
    (lambda loss: func.vmap(func.grad(loss)), ONES),
    (lambda loss: func.grad(lambda x: func.grad(loss)(x).sum()), ONES[0]),
]


@pytest.mark.parametrize(("transform", "argument"), TRANSFORMS)
def test_a_write_inside_a_transform_is_found(transform: Callable[..., Any], argument: torch.Tensor) -> None:
    """And nothing is left out, although these tensors show no memory of their own."""
    broken = gi.check(lambda: written_in(transform, argument))
    clean = gi.check(lambda: written_new_in(transform, argument))

    assert [finding.code for finding in broken.findings] == ["GI101"]
    assert not clean.findings
    assert not [note for note in (*broken.notes, *clean.notes) if note.startswith("Not looked at")]


@pytest.mark.parametrize("transform", [func.functionalize, func.vmap])
def test_a_write_without_backward_inside_a_transform_is_looked_at(transform: Callable[..., Any]) -> None:
    """Beside a backward call that is judged."""

    def step() -> None:
        written_new_in(transform, ONES)
        (torch.ones(2, requires_grad=True) * 2).sum().backward()

    assert not [note for note in gi.check(step).notes if note.startswith("Not looked at")]


def double(x: torch.Tensor) -> None:
    """Write to a tensor of the caller."""
    x.mul_(2)


def squared(w: torch.Tensor) -> torch.Tensor:
    """Write to what was saved, and forget it."""
    y = w * 1
    z = y.square()
    y.data.add_(1)
    return z


class Square(torch.autograd.Function):
    """Writes to what it saves, before it does so."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Square a copy."""
        ctx.copy = x.clone()
        ctx.copy.data.add_(1)
        ctx.copy.data.sub_(0.5)
        ctx.save_for_backward(ctx.copy)
        return ctx.copy**2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Differentiate it."""
        (copy,) = ctx.saved_tensors
        return 2 * grad * copy


def by_a_helper() -> object:
    """Call what writes."""
    y = torch.ones(2, requires_grad=True).exp()
    double(y)
    return y.sum().backward()


def in_a_helper() -> object:
    """Call what saves and writes."""
    z = squared(torch.ones(2, requires_grad=True))
    return z.sum().backward()


def of_a_function() -> object:
    """Write to what a custom Function has saved, past autograd."""
    y: Any = Square.apply(torch.ones(2, requires_grad=True))
    y.grad_fn.copy.data.mul_(3)
    return y.sum().backward()


def of_a_function_before() -> object:
    """Let it write itself."""
    y: Any = Square.apply(torch.ones(2, requires_grad=True))
    return y.sum().backward()


def past_autograd() -> object:
    """Write before saving, to another part of the memory, and twice to what is saved."""
    w = torch.ones(4, requires_grad=True)
    w.data.mul_(2)
    y = (w[:2] * 1).square() * w[2:]
    w.data[:2].zero_()
    z = y.sum()
    w.data[1:].mul_(3)
    w.data[3:].mul_(3)
    return z.backward()


def restored() -> object:
    """Restore what was there."""
    w = torch.ones(2, requires_grad=True)
    y = w.square().sum()
    w.data.add_(1)
    w.data.sub_(1)
    return y.backward()


def through_a_view() -> object:
    """Save a part, and write to the whole, twice on one line."""
    y = torch.ones(4, requires_grad=True) * 1
    z = y[:2].square()
    y.add_(1).mul_(2)
    return z.sum().backward()


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (by_a_helper, ["GI101 saved=2 called=3 backward=4 y"]),
        (in_a_helper, ["GI103 called=2 called=2 backward=3 the f32[2] of MulBackward0"]),
        (of_a_function, ["GI103 saved=2 written=3 backward=4 the f32[2]"]),
        (of_a_function_before, []),
        (past_autograd, ["GI103 saved=4 written=7 written=8 backward=9 w"]),
        (restored, []),
        (through_a_view, ["GI101 saved=3 written=4 backward=5 y"]),
    ],
)
def test_what_was_modified_and_where(step: Callable[[], object], found: list[str]) -> None:
    """The tensor by its name or by what made it, the lines that saved it and wrote to it, and who called these."""
    first, inside = step.__code__.co_firstlineno, range(len(inspect.getsource(step).splitlines()))

    assert [
        " ".join((
            one.code,
            *(f"{place.role}={place.line - first}" for place in one.places if place.line - first in inside),
            *(subject.partition(" (")[0] for subject in one.subjects),
        ))
        for one in gi.check(step, steps=1)
    ] == found  # fmt: skip


def test_only_memory_that_was_written_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading all that a large graph has saved would take long."""
    looked: list[str] = []

    def note(node: Any, value: SavedValue) -> torch.Tensor | None:
        looked.append(f"{node.name()} {value.name}")
        return raw_tensor(node, value)

    monkeypatch.setattr(stale, "raw_tensor", note)
    for writes in (True, False):

        def step(*, writes: bool = writes) -> object:
            w = torch.ones(2, requires_grad=True)
            y, other = w.exp(), w.tanh()
            if writes:
                y.data.add_(1)
            return (y.square() * other).sum().backward()

        looked.clear()
        gi.check(step, steps=1)

        assert looked == ["ExpBackward0 _saved_result"] * writes


def in_a_list() -> object:
    """Write to an item of a list."""
    kept = [torch.ones(2, requires_grad=True) * 1]
    z = kept[0].square()
    kept[0].add_(1)
    return z.sum().backward()


def in_a_tuple() -> object:
    """Write to an item of a tuple, which cannot be another one."""
    kept = (torch.ones(2, requires_grad=True) * 1,)
    z = kept[0].square()
    kept[0].add_(1)
    return z.sum().backward()


def in_a_tensor() -> object:
    """Write to a part of a tensor."""
    kept = torch.ones(2, 2, requires_grad=True) * 1
    z = kept.square()
    kept[0].add_(1)
    return z.sum().backward()


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        (in_a_list, "add 'kept[0] = kept[0].clone()' before "),
        (in_a_tuple, "clone() the tensor first."),
        (in_a_tensor, "add 'kept = kept.clone()' before "),
    ],
)
def test_the_copy_is_of_a_tensor(step: Callable[[], object], advice: str) -> None:
    """Not of the container that holds it."""
    (found,) = gi.check(step, steps=1)

    assert advice in (found.remedy or "")
