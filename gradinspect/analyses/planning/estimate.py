"""The first answer about plans: what the plain steps say about checkpoints, before any was run.

What comes in: the peak of the plain program and what its modules hold. What goes out: the checkpoint of one block that
leaves most modules alone and would fit, or the one that would need least. It is an estimate: what is computed again is
taken to need what one module holds, and the peak to stay where it is.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gradinspect.analyses.planning.blocks import Block, blocks_of
from gradinspect.analyses.planning.changes import Checkpoint, ModuleUse
from gradinspect.analyses.planning.search import PlanOutcome


class Estimate(NamedTuple):
    """What a checkpoint is expected to leave."""

    change: Checkpoint
    peak_bytes: int


def first_estimate(plain: PlanOutcome, uses: Iterable[ModuleUse], limit: int) -> Estimate | None:
    """Return the first answer; None if the plain program fits, or no block holds anything at its peak."""
    saved = plain.alive.get("saved", 0)
    if plain.peak_bytes <= limit or not saved:
        return None
    found = [
        Estimate(block.checkpointed(block.paths[:number]), plain.peak_bytes - min(saved, _freed(block, number)))
        for block in blocks_of(uses)
        for number in range(1, len(block.paths) + 1)
    ]
    return min(found, key=lambda one: _order_of(one, plain.peak_bytes, limit), default=None)


def _freed(block: Block, number: int) -> int:
    """Estimate what checkpoints of some modules free: the last one of the block holds all again in backward."""
    return block.saved_bytes * min(number, len(block.paths) - 1) // len(block.paths)


def _order_of(one: Estimate, plain: int, limit: int) -> tuple[int, int]:
    """Order estimates: what fits and frees least, so that least is computed again, then what needs least."""
    fits = one.peak_bytes <= limit
    return (0, plain - one.peak_bytes) if fits else (1, one.peak_bytes)
