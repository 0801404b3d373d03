"""What a compiled step keeps for backward, and how much is alive at most, under each activation memory budget.

What comes in: the forward and backward graphs that torch's partitioner makes under each budget, as plain lists of what
each operator makes and uses. What goes out: a row for each budget.

NOTE [Alive in a compiled graph]
A graph is run operator by operator: the results of one are there from then on, until the last one that uses them, or
a view of them, has run. What is returned stays. What a kernel has for itself while it runs, as a convolution, counts
beside its arguments. A backend that fuses operators, or runs them in another order, needs less or more. Operators
outside of compiled code count with what they keep, not with what they need while they run.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from gradinspect.graph import Record

BUDGETS: Final = tuple(tenth / 10 for tenth in range(11))

Key = int  # of a storage, in one pair of graphs


class Work(NamedTuple):
    """One operator: the storages that its results are in, and those that it uses."""

    made: dict[Key, int]  # with their bytes
    used: frozenset[Key]
    peak_bytes: int = 0  # what its kernel has at its peak beside its arguments; 0: no more than its results


class GraphPair(NamedTuple):
    """A forward and a backward graph that belong together."""

    forward: tuple[Work, ...]
    backward: tuple[Work, ...]
    inputs: tuple[Key | None, ...]  # of the forward; None: no tensor
    outputs: tuple[Key | None, ...]  # of the forward, as the program gets them
    saved: dict[Key, int]  # by the forward for the backward, with their bytes
    gradients: dict[Key, int]  # that the backward is given
    results: frozenset[Key]  # of the backward
    num_recomputed: int  # operators of the backward that the forward has run too
    recomputed_flops: int  # of those for which torch has a formula


class BudgetRow(Record, frozen=True):
    """What a step needs under one budget."""

    budget: float
    kept_bytes: int  # for backward, without parameters and buffers, when backward begins
    peak_bytes: int  # the most that is alive beside parameters, buffers and what the program holds itself
    num_recomputed: int
    recomputed_flops: int


class BudgetTable(Record, frozen=True):
    """The memory of a compiled step under each budget."""

    source: str
    call: str  # "backward #1 at train.py:20"
    backends: tuple[str, ...]
    num_graphs: int  # that have a backward, and belong to the call
    current: float  # the budget that the program has set; torch's default is 1
    rows: tuple[BudgetRow, ...]  # the current one among them
    walked_bytes: int  # what the nodes of the run were seen to keep: the same as the row of the current budget
    notes: tuple[str, ...] = ()


class UnchangedRun(Record, frozen=True):
    """The same step without torch.compile."""

    what: str  # "eager", "eager, checkpointed"
    kept_bytes: int = 0
    peak_bytes: int = 0
    problem: str = ""  # why it is not known
    note: str = ""  # a sentence: what the program checkpoints itself, or that nothing in it can be


class CompiledMemory(Record, frozen=True):
    """A step under each budget, beside the same step without torch.compile."""

    compiled: BudgetTable
    without: tuple[UnchangedRun, ...]


def most_alive(
    steps: Sequence[Work], start: Mapping[Key, int], stays: Collection[Key], elsewhere: Collection[Key]
) -> int:
    """Return the most bytes that are alive while a graph runs. NOTE [Alive in a compiled graph].

    Args:
        steps: Its operators, in order.
        start: What is there before, and may go when it was used for the last time.
        stays: What is there to the end.
        elsewhere: What is counted elsewhere.
    """
    last = {key: place for place, step in enumerate(steps) for key in (*step.used, *step.made)}
    alive = dict(start)
    total = most = sum(alive.values())
    for place, step in enumerate(steps):
        most = max(most, total + step.peak_bytes)
        for key, num_bytes in step.made.items():
            if key not in alive and key not in elsewhere:
                alive[key] = num_bytes
                total += num_bytes
        most = max(most, total)
        for key in (*step.used, *step.made):
            if last[key] == place and key not in stays and key in alive:
                total -= alive.pop(key)
    return most
