"""The ledger of storages: sums, the peak, and what was alive at it."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.observers.memory.storage_curve import MAX_POINTS
from gradinspect.observers.memory.storage_ledger import Allocation, Ledger, Purpose, StorageMaker

MAKER = StorageMaker(1, "forward", "aten.mul")


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.integers(0, 9)), max_size=80))
def test_what_was_alive_at_the_peak_adds_up_to_it(actions: list[tuple[int, bool, int]]) -> None:
    """Whatever is made, resized and given back in which order."""
    ledger = Ledger(1)
    allocations: list[Allocation] = []
    highest = 0
    for size, is_new, which in actions:
        if is_new or not allocations:
            allocations.append(ledger.begin(size, MAKER))
        elif size % 3 == 0:
            ledger.resize(allocations[which % len(allocations)], size, MAKER)
        else:
            ledger.end(allocations.pop(which % len(allocations)))
        highest = max(highest, ledger.num_bytes)
        assert sum(allocation.num_bytes for allocation in allocations) == ledger.num_bytes
    peak = 0 if ledger.peak is None else ledger.peak.num_bytes

    assert peak >= highest
    assert sum(allocation.num_bytes for allocation in ledger.alive_at_peak()) == peak


def test_resized_memory_is_there_twice_for_a_moment() -> None:
    """The new memory is given out before the old one is taken back."""
    ledger = Ledger(1)
    allocation = ledger.begin(100, MAKER)
    ledger.resize(allocation, 60, MAKER)

    assert ledger.num_bytes == 60
    assert ledger.peak is not None
    assert ledger.peak.num_bytes == 160


def test_the_more_lasting_purpose_counts() -> None:
    """A saved parameter is a parameter, whichever was learned first."""
    allocation = Ledger(1).begin(4, MAKER)
    allocation.label(Purpose("parameter", "weight"))
    allocation.label(Purpose("saved"))

    assert allocation.purpose == Purpose("parameter", "weight")


def test_steps_after_the_last_one_are_left_out() -> None:
    """Each step has its own peak, and its end."""
    ledger = Ledger(2)
    for step in (1, 2, 3):
        ledger.begin(10 * step, MAKER._replace(step=step))

    assert {step: peak.num_bytes for step, peak in ledger.step_peaks.items()} == {1: 10, 2: 30}
    assert ledger.end_bytes == {0: 0, 1: 10, 2: 30}
    assert ledger.num_bytes == 30


def test_the_curve_stays_short_and_keeps_its_peak() -> None:
    """However long a step is."""
    ledger = Ledger(1)
    for number in range(20_000):
        ledger.end(ledger.begin(number % 777, MAKER))
    points = list(ledger.curve.points(ledger.alive()))

    assert len(points) <= MAX_POINTS
    assert max(size for _, _, size, _ in points) == 776
