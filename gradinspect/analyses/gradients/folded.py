"""Parameters of equal blocks in one row: `h.0-11.mlp.weight` of twelve, with the range of their gradients."""

import math
from collections.abc import Iterator, Sequence

from gradinspect.analyses.gradients.observed import ParameterRow
from gradinspect.analyses.structure.name_folding import MIN_ALIKE, alike, name_by_indices, odd_one
from gradinspect.graph import Graph, Record


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
        odd = odd_one([row.stats.norm for row in found if row.stats is not None])
        return None if odd is None else (found[odd[0]], odd[1])


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
