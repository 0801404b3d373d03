"""Writes past autograd: what is reported, against gradients with copies of what was saved."""

from contextlib import nullcontext

import pytest
import torch
from silent_writes import RIGHT, WRONG, Program, cache_by_index, whole_weight
from torch import Tensor

import gradinspect as gi
from gradinspect.checks.evidence.in_place import contents

MODIFIED = {"GI101", "GI102", "GI103"}


def gradients(program: Program, *, copied: bool) -> list[Tensor | None]:
    """Run a program, with what it saves as it is at backward or copied."""
    torch.manual_seed(0)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda one: one.detach().clone(), lambda one: one)
    with hooks if copied else nullcontext():
        loss, leaves = program()
    loss.backward()
    return [one.grad for one in leaves]


def is_spoiled(program: Program) -> bool:
    """Return whether the gradients are others than those of what was saved, or torch refuses to compute them."""
    expected = gradients(program, copied=True)
    try:
        actual = gradients(program, copied=False)
    except RuntimeError:
        return True
    pairs = zip(expected, actual, strict=True)
    return not all(
        one is not None and other is not None and torch.equal(one.nan_to_num(-9), other.nan_to_num(-9))
        for one, other in pairs
    )


def found(program: Program) -> list[gi.Finding]:
    """Check a program."""

    def step() -> None:
        torch.manual_seed(0)
        program()[0].backward()

    return [one for one in gi.check(step, steps=1) if one.code in MODIFIED]


@pytest.mark.slow
@pytest.mark.parametrize("program", WRONG, ids=lambda one: one.__name__)
def test_what_spoils_gradients_is_found(program: Program) -> None:
    """Whichever way the saved elements were written."""
    assert is_spoiled(program)
    assert len(found(program)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("program", RIGHT, ids=lambda one: one.__name__)
def test_what_leaves_gradients_alone_is_not_reported(program: Program) -> None:
    """Writes to other elements of the same memory, and of values that are there already."""
    assert not is_spoiled(program)
    assert found(program) == []


def test_what_cannot_be_compared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an operator selects elements; a write to all of them is reported without its old values."""
    monkeypatch.setattr(contents, "MAX_BYTES", 4)

    def unknown_step() -> None:
        cache_by_index()[0].backward()

    def whole_step() -> None:
        whole_weight()[0].backward()

    unknown, whole = gi.check(unknown_step, steps=2), gi.check(whole_step, steps=2)

    assert [one.code for one in unknown] == []
    assert [note for note in unknown.notes if "8.0 MiB" in note] == [
        "Not checked: whether 10 saved tensors changed where a write past autograd selects elements, because no more "
        "than 8.0 MiB of a write and 32.0 MiB of all are kept to compare."
    ]
    assert not unknown.is_complete
    assert "GI103" in [one.code for one in whole]
    assert whole.is_complete
