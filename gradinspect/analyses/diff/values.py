"""Which value differs first, in the forward pass and in backward, and by how much.

What comes in: two graphs with fingerprints, and which node is which. What goes out: a `ValueDiff`.

NOTE [Distance of fingerprints]
A projection is the sum of all elements, each with a sign that only its position decides. So the difference of two
projections is the projection of the difference, and its square is, on average over signs, the squared norm of the
difference. The mean over several gives the distance of two tensors within a third, from a few numbers each.

NOTE [Rounding]
Sums in another order, on another machine or with more threads, differ by some units of the last place. What differs
relative to its norm by less than `ROUNDING` of its dtype is counted apart; --rtol and --atol set other bounds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gradinspect.analyses.diff.records import Distance, ValueDiff, ValueDifference
from gradinspect.graph import Fingerprint, Graph, NodeValues, Record, source_of

ROUNDING: Final[Mapping[str, float]] = {"float64": 1e-11, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
MAX_PARAMETERS = 20


class Tolerance(Record, frozen=True):
    """By how much values may differ: `absolute + relative * norm`."""

    absolute: float = 0.0
    relative: float | None = None  # None: NOTE [Rounding]


DEFAULT_TOLERANCE: Final = Tolerance()


def diff_values(
    before: Graph, after: Graph, matched: Mapping[int, int], order: Sequence[int], tolerance: Tolerance
) -> ValueDiff:
    """Compare the fingerprints of nodes that are matched.

    Args:
        before: A.
        after: B.
        matched: Which node of A is which one of B.
        order: The nodes of B in the order of the forward pass.
        tolerance: By how much values may differ.
    """
    return _Comparison(before, after, matched, tolerance).result(order)


class _Comparison:
    def __init__(self, before: Graph, after: Graph, matched: Mapping[int, int], tolerance: Tolerance) -> None:
        self.before, self.after = before, after
        self.tolerance = tolerance
        self._mine = {values.node: values for values in before.values}
        self._theirs = {values.node: values for values in after.values}
        self._inverse = {theirs: mine for mine, theirs in matched.items()}
        self._num_compared = self._num_rounded = 0
        self._largest = 0.0

    def result(self, order: Sequence[int]) -> ValueDiff:
        ran = sorted((v for v in self.after.values if v.order is not None), key=lambda v: v.order or 0)
        outputs = [found for node in order for found in self._differences(node, is_gradient=False)]
        gradients = [found for values in ran for found in self._differences(values.node, is_gradient=True)]
        leaves = [found for found in outputs if self._is_leaf(found)]
        inner = [found for found in outputs if not self._is_leaf(found)]
        return ValueDiff(
            parameters=tuple(leaves),
            first_forward=inner[0] if inner else None,
            first_backward=gradients[0] if gradients else None,
            num_outputs=len(inner),
            num_gradients=len(gradients),
            num_compared=self._num_compared,
            num_rounded=self._num_rounded,
            largest_rounded=self._largest,
        )

    def _is_leaf(self, found: ValueDifference) -> bool:
        return self.after.nodes[found.node_after].kind == "accumulate_grad"

    def _differences(self, theirs: int, *, is_gradient: bool) -> Iterator[ValueDifference]:
        mine = self._inverse.get(theirs)
        values, others = self._mine.get(-1 if mine is None else mine), self._theirs.get(theirs)
        if mine is None or values is None or others is None:
            return
        pairs = zip(_prints(values, is_gradient=is_gradient), _prints(others, is_gradient=is_gradient), strict=False)
        for output_nr, (one, other) in enumerate(pairs):
            if one is None or other is None:
                continue
            self._num_compared += 1
            found = distance(one, other)
            if found.absolute == 0 and found.relative == 0:
                continue
            if self._is_within(found, max(one.norm, other.norm), self._rounding(mine, theirs, output_nr)):
                self._num_rounded += 1
                self._largest = max(self._largest, found.relative)
            else:
                yield self._difference(mine, theirs, output_nr, found)

    def _is_within(self, found: Distance, norm: float, rounding: float) -> bool:
        relative = rounding if self.tolerance.relative is None else self.tolerance.relative
        return math.isfinite(found.relative) and found.absolute <= self.tolerance.absolute + relative * norm

    def _rounding(self, mine: int, theirs: int, output_nr: int) -> float:
        """Return the rounding of the coarser of both dtypes. NOTE [Rounding]."""
        infos = [
            node.forward_outputs[output_nr] if output_nr < len(node.forward_outputs) else None
            for node in (self.before.nodes[mine], self.after.nodes[theirs])
        ]
        return max((ROUNDING.get(info.dtype, 0.0) for info in infos if info is not None), default=ROUNDING["float32"])

    def _difference(self, mine: int, theirs: int, output_nr: int, found: Distance) -> ValueDifference:
        node = self.after.nodes[theirs]
        name = node.leaf.name if node.leaf is not None and node.leaf.name is not None else node.name
        module = "" if node.module is None else self.after.modules[node.module].path or self.after.model_name
        return ValueDifference(mine, theirs, output_nr, found, name, module, source_of(self.after, node) or "")


def _prints(values: NodeValues, *, is_gradient: bool) -> tuple[Fingerprint | None, ...]:
    return values.incoming if is_gradient else values.outputs


def distance(one: Fingerprint, other: Fingerprint) -> Distance:
    """Estimate how far two tensors are from each other. NOTE [Distance of fingerprints]."""
    if one.digest == other.digest:
        return Distance(0.0, 0.0)
    if one.num_nonfinite != other.num_nonfinite:
        return Distance(math.inf, math.inf)
    gaps = [mine - theirs for mine, theirs in zip(one.projections, other.projections, strict=False)]
    parts = [math.hypot(*gaps) / math.sqrt(max(len(gaps), 1)), abs(one.norm - other.norm)]
    absolute = max(*parts, abs(one.low - other.low), abs(one.high - other.high))
    norm = max(one.norm, other.norm)
    return Distance(absolute, absolute / norm if norm else 0.0, is_reordered=one.sketch == other.sketch)
