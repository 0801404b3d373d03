"""Parameters of equal blocks in one row: `h.0-11.mlp.weight` of twelve, with the range of their gradients."""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from gradinspect.analyses.gradients.observed import ParameterRow
from gradinspect.analyses.structure.name_folding import alike, name_by_indices
from gradinspect.graph import Graph, Record

MIN_ALIKE: Final = 3  # two can be read one by one
ODD: Final = 3.0  # times the median of the others


class FoldedRow(Record, frozen=True, kw_only=True):
    """Parameters of one shape whose names differ in an index, or one parameter."""

    name: str
    rows: tuple[ParameterRow, ...]

    @property
    def norms(self) -> list[float]:
        """The norms of their gradients, as far as they are known."""
        return [row.stats.norm for row in self.rows if row.stats is not None]

    @property
    def odd_one(self) -> tuple[ParameterRow, float] | None:
        """The one whose norm is farthest from those of the others, and how many times theirs it is; None if none is."""
        found = [row for row in self.rows if row.stats is not None and math.isfinite(row.stats.norm)]
        if len(found) < MIN_ALIKE:
            return None
        factors = [(row, _times(row, found)) for row in found]
        row, factor = max(factors, key=lambda pair: abs(math.log(pair[1])) if pair[1] > 0 else math.inf)
        return (row, factor) if not 1 / ODD < factor < ODD else None


def _times(row: ParameterRow, rows: Sequence[ParameterRow]) -> float:
    others = median(other.stats.norm for other in rows if other is not row and other.stats is not None)
    norm = 0.0 if row.stats is None else row.stats.norm
    return norm / others if others else 1.0 if not norm else math.inf


def folded_parameters(graph: Graph, rows: Sequence[ParameterRow]) -> Iterator[FoldedRow]:
    """Yield the parameters of equal blocks as one, each in the place of its first.

    One without a gradient is never in a row with one that has a gradient, nor one with NaN or Inf with one without.

    Args:
        graph: It has the shapes.
        rows: Of its parameters.
    """

    def look(row: ParameterRow) -> tuple[object, ...]:
        leaf = graph.nodes[row.node].leaf
        info = None if leaf is None else leaf.info
        shape = None if info is None else (info.shape, info.dtype)
        is_finite = row.stats is None or not row.stats.num_nonfinite
        return shape, row.is_missing, row.unmeasured, is_finite

    for group in alike(rows, lambda row: (row.name,), look):
        if len({row.name for row in group}) < max(len(group), MIN_ALIKE):
            yield from (FoldedRow(name=row.name, rows=(row,)) for row in group)
        else:
            yield FoldedRow(name=name_by_indices(row.name for row in group), rows=tuple(group))
