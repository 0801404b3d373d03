"""What was alive over time, by kind: to the byte at every point, in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.memory.step import KINDS, Phase, StorageKind
from gradinspect.observers.memory import storage_curve
from gradinspect.observers.memory.storage_ledger import Allocation, Ledger, Purpose, StorageMaker

PHASES: tuple[Phase, ...] = ("forward", "backward", "optimizer")
ACTIONS = st.tuples(
    st.sampled_from(["begin", "begin", "end", "label", "on"]),
    st.integers(1, 50),
    st.integers(0, 9),
    st.sampled_from(KINDS),
)


@given(actions=st.lists(ACTIONS, max_size=120))
def test_kinds_are_those_of_a_moment(actions: list[tuple[str, int, int, StorageKind]]) -> None:
    """Each point has what was alive, by what it was for in the end, at one moment: that of its highest sum."""
    ledger, allocations, seen = Ledger(9), list[Allocation](), list[list[Allocation]]()
    phase = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(storage_curve, "MAX_POINTS", 4)  # so that they are merged often
        for what, size, which, kind in actions:
            maker = StorageMaker(1 + phase // 3, PHASES[phase % 3], "aten.mul")
            if what == "begin" or not allocations:
                allocations.append(ledger.begin(size, maker))
            elif what == "end":
                ledger.end(allocations.pop(which % len(allocations)))
            elif what == "label":
                allocations[which % len(allocations)].label(Purpose(kind))
            else:
                phase = min(phase + 1, 26)
            seen.append(list(allocations))
    moments = [by_kind(alive) for alive in seen]

    for _, _, num_bytes, sums in ledger.curve.points(ledger.alive()):
        assert sum(sums) == num_bytes
        assert dict(zip(KINDS, sums, strict=True)) in moments


def by_kind(alive: list[Allocation]) -> dict[StorageKind, int]:
    """Sum what is alive."""
    return {kind: sum(allocation.num_bytes for allocation in alive if allocation.kind == kind) for kind in KINDS}


@given(actions=st.lists(st.tuples(st.booleans(), st.integers(1, 50), st.integers(0, 9)), max_size=60))
def test_spans_add_up_to_the_curve(actions: list[tuple[bool, int, int]]) -> None:
    """Where none is left out for its size, the storages alive at a point are all of its bytes; resized ones too."""
    ledger, allocations = Ledger(1), list[Allocation]()
    for is_new, size, which in actions:
        if is_new or not allocations:
            allocations.append(ledger.begin(size, StorageMaker(1, "forward", "aten.mul")))
        elif size % 3 == 0:
            ledger.resize(allocations[which % len(allocations)], size, StorageMaker(1, "forward", "aten.mul"))
        else:
            ledger.end(allocations.pop(which % len(allocations)))
    spans = ledger.curve.spans(ledger.alive())

    for place, (_, _, num_bytes, _) in enumerate(ledger.curve.points(ledger.alive())):
        assert sum(span.allocation.num_bytes for span in spans if span.first <= place <= span.last) == num_bytes


def test_only_the_largest_are_kept() -> None:
    """Whatever ends, and when."""
    ledger = Ledger(1)
    for number in range(3000):
        ledger.end(ledger.begin(number * 7 % 3001, StorageMaker(1, "forward", "aten.mul")))
    spans = ledger.curve.spans(())

    assert len(spans) <= storage_curve.MAX_SPANS
    assert spans[0].allocation.num_bytes == 3000
