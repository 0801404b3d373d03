"""Saved tensors that were modified, in small programs that run in this process."""

from collections.abc import Callable

import pytest
import torch

import gradinspect as gi
from gradinspect.checks.evidence.in_place import stale


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
