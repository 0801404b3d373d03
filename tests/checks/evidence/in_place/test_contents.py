"""What memory held before it was written, and whether a tensor differs from it."""

import pytest
import torch
from torch import Tensor

from gradinspect.checks.evidence.in_place import contents
from gradinspect.checks.evidence.in_place.contents import Content, KeptContents, difference, read_bytes
from gradinspect.checks.evidence.in_place.regions import Region, region_of

NAN = float("nan")


def before(part: Tensor) -> tuple[Region, Content | None]:
    """Copy a part of some memory that is about to be written."""
    data = read_bytes(part, region_of(part))
    assert data is not None
    return region_of(part), Content(data)


@pytest.mark.parametrize(
    ("saved", "changed"),
    [
        ((slice(None), slice(None)), True),
        ((slice(None), slice(2)), False),  # the columns beside it
        ((slice(None), slice(2, 3)), True),
        ((0, slice(None)), False),  # the row above
        ((1, 2), True),
    ],
)
def test_what_differs_is_what_was_saved_and_written(saved: tuple[int | slice, ...], *, changed: bool) -> None:
    """Not the memory around it."""
    memory = torch.zeros(3, 4)
    written = memory[1:, 2:3]
    content = before(written)
    written.fill_(1)
    found = difference(memory[saved], [content])

    assert found is not None
    assert bool(found) == changed


@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [(1.0, 0.0, False), (0.0, 0.0, False), (1.0, 1.0, True), (0.0, NAN, True), (0.0, -0.0, True)],
)
def test_writes_are_undone_one_by_one(first: float, second: float, *, changed: bool) -> None:
    """The newest first, and bit by bit."""
    memory, done = torch.zeros(2), []
    for value in (first, second):
        done.append(before(memory))
        memory.fill_(value)
    found = difference(memory, done)

    assert found is not None
    assert bool(found) == changed


def test_nan_equals_itself() -> None:
    """And other bits that are NaN too differ."""
    memory = torch.tensor([NAN, 1.0])
    content = before(memory)
    memory.copy_(memory.clone())
    same = difference(memory, [content])
    memory.view(torch.int32)[0] += 1
    other = difference(memory, [content])

    assert [same is not None and bool(same), other is not None and bool(other)] == [False, True]


@pytest.mark.parametrize(("size", "is_known"), [(3, True), (4, True), (5, False)])
def test_a_large_part_is_not_copied(size: int, monkeypatch: pytest.MonkeyPatch, *, is_known: bool) -> None:
    """However large the memory around it is."""
    monkeypatch.setattr(contents, "MAX_BYTES", 16)
    tensor = torch.zeros(1000)[:size]

    assert (read_bytes(tensor, region_of(tensor)) is not None) == is_known


def test_what_cannot_be_compared_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A content that was let go, one of another size, and memory that is too wide."""
    memory = torch.zeros(4)
    content = before(memory)

    assert difference(memory, [content]) is not None
    assert difference(memory, [content, (region_of(memory), None)]) is None
    assert difference(memory, [(region_of(memory), Content(None))]) is None
    assert difference(memory, [(region_of(memory[:2]), content[1])]) is None
    monkeypatch.setattr(contents, "MAX_SPAN", 15)
    assert difference(memory, [content]) is None


def test_the_older_contents_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that never more than a number of bytes is kept."""
    monkeypatch.setattr(contents, "MAX_KEPT", 10)
    kept = KeptContents()
    made = [kept.keep(torch.zeros(size, dtype=torch.uint8)) for size in (4, 4, 4, 11, 2)]

    assert [one.data is not None for one in made] == [False, False, False, False, True]


def test_copying_is_unobserved() -> None:
    """A tensor without memory has no bytes."""
    meta = torch.empty(3, device="meta")
    data = read_bytes(meta, region_of(meta))

    assert data is None or data.is_meta
