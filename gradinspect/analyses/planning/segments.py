"""Where a Sequential can be cut into segments, each of which is computed again from what it was given.

NOTE [What a segment is computed again from]
A checkpoint keeps what a segment was given. If the first module of the segment writes to that, as
`nn.ReLU(inplace=True)` does, the forward that is computed again begins with other values, and nothing raises. So no
segment begins with such a module, and a module that writes to its input is not checkpointed by itself.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from gradinspect.analyses.planning.changes import CheckpointSegments, ModuleUse

MAX_SEQUENCES = 3
MIN_SHARE = 0.1  # of what all modules hold


class FlatSequence(NamedTuple):
    """A Sequential that holds much."""

    use: ModuleUse

    @property
    def most_segments(self) -> int:
        """The largest number of segments it can be cut into."""
        return 1 + len(self._cuts())

    def in_segments(self, number: int) -> CheckpointSegments:
        """Cut it into segments that hold about the same, at most as many as asked for."""
        use = self.use
        ends = list(accumulate(part.saved_bytes for part in use.parts))
        starts = {0}
        for nth in range(1, number):
            starts.add(_nearest(self._cuts(), ends, ends[-1] * nth / number))
        return CheckpointSegments(
            root=use.root,
            path=use.path,
            class_name=use.class_name,
            starts=tuple(sorted(starts)),
            keeps_statistics=use.keeps_statistics,
            prefix=use.prefix,
        )

    def _cuts(self) -> list[int]:
        """List the modules that a segment can begin with. NOTE [What a segment is computed again from]."""
        return [number for number, part in enumerate(self.use.parts) if number and not part.writes_input]


def _nearest(cuts: Sequence[int], ends: Sequence[int], wanted: float) -> int:
    """Find the cut before which about as many bytes are saved as are wanted."""
    return min(cuts, key=lambda cut: abs(ends[cut - 1] - wanted))


def sequences_of(uses: Iterable[ModuleUse]) -> tuple[FlatSequence, ...]:
    """List the Sequentials that hold much, those that hold most first."""
    uses = tuple(uses)
    total = sum(use.saved_bytes for use in uses if not use.path)
    large = [use for use in uses if use.parts and use.saved_bytes > MIN_SHARE * total]
    found = [FlatSequence(use) for use in large if not use.unrepeatable]
    found = [sequence for sequence in found if sequence.most_segments > 1]
    return tuple(sorted(found, key=lambda sequence: -sequence.use.saved_bytes)[:MAX_SEQUENCES])
