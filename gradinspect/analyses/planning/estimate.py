"""The first answer about plans: what the plain steps say about checkpoints, before any was run.

What comes in: the peak of the plain program and what its modules hold. What goes out: the checkpoint of one block,
or of segments of a Sequential, that frees least and would fit, or the one that would need least. It is an estimate:
what is computed again is taken to need what one module or segment holds, and the peak to stay where it is. A module
without parts is left out: what it makes is mostly its result, which the next one holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from gradinspect.analyses.planning.blocks import Block, blocks_of
from gradinspect.analyses.planning.changes import ModuleChange, ModuleUse
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.analyses.planning.segments import FlatSequence, sequences_of

MAX_SEGMENTS = 16


class Estimate(NamedTuple):
    """What a checkpoint is expected to leave."""

    change: ModuleChange
    peak_bytes: int


def first_estimate(plain: PlanOutcome, uses: Iterable[ModuleUse], limit: int) -> Estimate | None:
    """Return the first answer; None if the plain program fits, or no block holds anything at its peak."""
    saved = plain.alive.get("saved", 0)
    if plain.peak_bytes <= limit or not saved:
        return None
    found = [Estimate(change, plain.peak_bytes - min(saved, freed)) for change, freed in _changes([*uses]) if freed > 0]
    return min(found, key=lambda one: _order_of(one, plain.peak_bytes, limit), default=None)


def _changes(uses: Sequence[ModuleUse]) -> Iterator[tuple[ModuleChange, int]]:
    """Yield changes, and the bytes that each is expected to free."""
    for block in blocks_of([use for use in uses if use.has_parts and not use.unrepeatable]):
        for number in range(1, len(block.paths) + 1):
            yield block.checkpointed(block.paths[:number]), _freed(block, number)
    for sequence in sequences_of(uses):
        for number in range(2, min(sequence.most_segments, MAX_SEGMENTS) + 1):
            yield sequence.in_segments(number), _freed_by_segments(sequence, number)


def _freed_by_segments(sequence: FlatSequence, number: int) -> int:
    """Estimate what segments free: one of them is there at a time, and what each but the first is given."""
    held = [part.saved_bytes for part in sequence.use.parts]
    starts = sequence.in_segments(number).starts
    largest = max(sum(held[first:last]) for first, last in pairwise((*starts, len(held))))
    return sum(held) - largest - sum(held[start - 1] for start in starts[1:])


def _freed(block: Block, number: int) -> int:
    """Estimate what checkpoints of some modules free: the last one of the block holds all again in backward."""
    return block.saved_bytes * min(number, len(block.paths) - 1) // len(block.paths)


def _order_of(one: Estimate, plain: int, limit: int) -> tuple[int, int]:
    """Order estimates: what fits and frees least, so that least is computed again, then what needs least."""
    fits = one.peak_bytes <= limit
    return (0, plain - one.peak_bytes) if fits else (1, one.peak_bytes)
