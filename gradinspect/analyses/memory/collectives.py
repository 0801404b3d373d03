"""What one rank of a job sends: its collectives, in order.

What comes in: a record of each. What goes out: those of one step, and runs of equal ones, as a table shows them.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from gradinspect.analyses.memory.step import Collective, StepMemory


class CollectiveRun(NamedTuple):
    """Equal collectives, one after the other."""

    first: Collective
    times: int

    @property
    def num_bytes(self) -> int:
        """Of all together."""
        return self.first.num_bytes * self.times


def last_step(memory: StepMemory) -> tuple[Collective, ...]:
    """Return the collectives of the last step that was watched: those of the first also set up what is kept."""
    number = max((collective.step for collective in memory.collectives if collective.step <= memory.asked), default=0)
    return tuple(collective for collective in memory.collectives if collective.step == number)


def in_runs(collectives: Sequence[Collective]) -> Iterator[CollectiveRun]:
    """Yield them in order, equal neighbors together."""
    for first, same in groupby(collectives):
        yield CollectiveRun(first, sum(1 for _ in same))
