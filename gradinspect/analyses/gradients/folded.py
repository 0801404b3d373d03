"""Parameters and module calls of equal blocks in one row: `h.0-11.mlp.weight` of twelve, and the odd one out."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from math import isfinite
from statistics import median_low
from typing import TypeVar

from gradinspect.analyses.gradients.observed import FAR, FlowRow, ParameterRow
from gradinspect.analyses.gradients.steps import Move
from gradinspect.analyses.structure.name_folding import alike, name_by_indices, odd_one, pattern_of
from gradinspect.graph import GradientStats, Graph, Record, TensorInfo

T = TypeVar("T")
F = TypeVar("F")


class FoldedRow(Record, frozen=True, kw_only=True):
    """Parameters whose names differ in an index, or one parameter."""

    name: str
    rows: tuple[ParameterRow, ...]

    @property
    def norms(self) -> list[float]:
        """The norms of their gradients, as far as they are known."""
        return [row.stats.norm for row in self.rows if row.stats is not None]

    @property
    def odd_one(self) -> tuple[ParameterRow, float] | None:
        """The one whose norm is farthest from those of the others, and how many times theirs it is; None if none is."""
        found = [row for row in self.rows if row.stats is not None and isfinite(row.stats.norm)]
        odd = odd_one([row.stats.norm for row in found if row.stats is not None])
        return None if odd is None else (found[odd[0]], odd[1])


class FoldedMove(Record, frozen=True, kw_only=True):
    """Parameters whose names differ in an index, through several calls, or one parameter."""

    name: str
    moves: tuple[Move, ...]

    def in_call(self, place: int) -> list[ParameterRow | None]:
        """Return what each parameter is in one call."""
        return [move.rows[place] for move in self.moves]

    @property
    def norms(self) -> tuple[float | None, ...]:
        """The median of their gradient norms in each call."""
        several = zip(*(move.norms for move in self.moves), strict=True)
        known = ([norm for norm in norms if norm is not None] for norms in several)
        return tuple(median_low(norms) if norms else None for norms in known)

    @property
    def odd_one(self) -> tuple[str, float] | None:
        """Which norm is farthest from those of the others in the last call, and how many times theirs it is."""
        found = [(move.name, norm) for move in self.moves if (norm := move.norms[-1]) and isfinite(norm)]
        odd = odd_one([norm for _, norm in found])
        return None if odd is None else (found[odd[0]][0], odd[1])


class FoldedFlow(Record, frozen=True, kw_only=True):
    """Calls of equal modules, or one call."""

    rows: tuple[FlowRow, ...]  # the one closest to the loss first

    @property
    def depth(self) -> int:
        """How many modules are around it."""
        return self.rows[0].depth

    @property
    def odd_one(self) -> tuple[FlowRow, float] | None:
        """The call whose norm is farthest from those of the others, and how many times theirs it is."""
        found = [row for row in self.rows if isfinite(row.stats.norm)]
        odd = odd_one([row.stats.norm for row in found])
        return None if odd is None else (found[odd[0]], odd[1])


def folded_flow(rows: Sequence[FlowRow]) -> tuple[FoldedFlow, ...]:
    """Fold calls of equal modules below the same module, or below such as are folded, each in the place of its first.

    Equal modules have the same modules inside of them, but for numbers. Those whose gradients vanish or explode from
    one to the next stay apart, and so do those with other numbers of elements that are NaN or Inf.

    Args:
        rows: From the loss to the inputs, each below the one that it is inside of.
    """
    around = list(_places_around(rows))
    inside = _names_inside(rows, around)
    look = [(inside.get(place), *_look(row)) for place, row in enumerate(rows)]
    first_of: dict[int | None, int | None] = {None: None}  # a row and the first of those that it is folded with
    for _, places in groupby(sorted(range(len(rows)), key=lambda place: rows[place].depth), lambda at: rows[at].depth):
        for found in alike(places, lambda at: (rows[at].path,), lambda at: (first_of[around[at]], look[at])):
            is_folded = len(found) > 1 and _are_near([rows[place].stats.norm for place in found])
            first_of.update((place, found[0] if is_folded else place) for place in found)
    groups: dict[int | None, list[FlowRow]] = {}
    inside_of: dict[int | None, list[int]] = {}
    for place, row in enumerate(rows):
        if first_of[place] == place:
            inside_of.setdefault(first_of[around[place]], []).append(place)
        groups.setdefault(first_of[place], []).append(row)
    return tuple(FoldedFlow(rows=tuple(groups[place])) for place in _nested(inside_of))


def _nested(inside_of: dict[int | None, list[int]]) -> Iterator[int]:
    """Yield rows, each below the one around it, which stands where its first module was."""
    waiting = inside_of.get(None, [])[::-1]
    while waiting:
        place = waiting.pop()
        yield place
        waiting += inside_of.get(place, [])[::-1]


def _names_inside(rows: Sequence[FlowRow], around: Sequence[int | None]) -> dict[int, frozenset[Hashable]]:
    """Return for each row the names and classes of the modules inside of it, however deep."""
    inside: dict[int, set[Hashable]] = {}
    numbers: dict[Hashable, int] = {}
    for place in reversed(range(len(rows))):  # what is inside comes behind what is around it
        row, outer = rows[place], around[place]
        if outer is not None:
            name = pattern_of(row.path.removeprefix(rows[outer].path))
            contents = frozenset(inside.get(place, ()))
            number = numbers.setdefault(contents, len(numbers))
            inside.setdefault(outer, set()).add((name, row.class_name, number))
    return {place: frozenset(found) for place, found in inside.items()}


def unfolded_flow(rows: Sequence[FlowRow]) -> tuple[FoldedFlow, ...]:
    """Give each call a row of its own."""
    return tuple(FoldedFlow(rows=(row,)) for row in rows)


def as_deep_as_fits(folded: Sequence[FoldedFlow], max_rows: int) -> tuple[FoldedFlow, ...]:
    """Leave out the innermost modules until there are no more rows than that, or only the outermost are left."""
    depths = Counter(row.depth for row in folded)
    deepest, count = -1, 0
    for depth in sorted(depths):
        count += depths[depth]
        if deepest >= 0 and count > max_rows:
            break
        deepest = depth
    return tuple(row for row in folded if row.depth <= deepest)


def _places_around(rows: Sequence[FlowRow]) -> Iterator[int | None]:
    """Yield for each row the place of the one that it is inside of."""
    open_rows: list[int] = []
    for place, row in enumerate(rows):
        while open_rows and rows[open_rows[-1]].depth >= row.depth:
            open_rows.pop()
        yield open_rows[-1] if open_rows else None
        open_rows.append(place)


def _are_near(norms: Sequence[float]) -> bool:
    """Return whether a range says enough of some norms: of a gradient that vanishes, each block has a row."""
    usable = [norm for norm in norms if norm > 0 and isfinite(norm)]
    odd = odd_one(usable)
    others = [norm for place, norm in enumerate(usable) if odd is None or place != odd[0]]
    return not others or max(others) / min(others) < FAR


def _look(row: FlowRow) -> tuple[Hashable, ...]:
    return row.class_name, row.stats.norm == 0, row.stats.num_nonfinite


def _kind(stats: GradientStats | None) -> tuple[bool, int]:
    """Return what has no range together with others: zeros, and how many elements are not finite."""
    return (False, 0) if stats is None else (stats.norm == 0, stats.num_nonfinite)


def folded_parameters(graph: Graph, rows: Sequence[ParameterRow]) -> list[FoldedRow]:
    """Return the parameters of equal blocks as one, whatever their sizes, each in the place of its first.

    One without a gradient is never in a row with one that has a gradient, nor zeros, NaN or Inf with other numbers.

    Args:
        graph: It has the shapes.
        rows: Of its parameters.
    """

    def look(row: ParameterRow) -> tuple[object, ...]:
        leaf = graph.nodes[row.node].leaf
        return _look_of(row, None if leaf is None else leaf.info)

    return _folded(rows, lambda row: row.name, look, lambda name, part: FoldedRow(name=name, rows=tuple(part)))


def unfolded_parameters(rows: Sequence[ParameterRow]) -> list[FoldedRow]:
    """Give each parameter a row of its own."""
    return [FoldedRow(name=row.name, rows=(row,)) for row in rows]


def folded_moves(rows: Sequence[Move]) -> list[FoldedMove]:
    """Return the parameters of equal blocks as one, if they are alike in each call."""

    def look(move: Move) -> tuple[object, ...]:
        return tuple(row and _look_of(row, row.stats) for row in move.rows)

    return _folded(rows, lambda move: move.name, look, lambda name, part: FoldedMove(name=name, moves=tuple(part)))


def _folded(
    rows: Sequence[T],
    name: Callable[[T], str],
    look: Callable[[T], Hashable],
    make: Callable[[str, list[T]], F],
) -> list[F]:
    groups = alike(rows, lambda row: (name(row),), look)
    parts = chain.from_iterable(_split(group, name) for group in groups)
    return [make(name_by_indices(map(name, part)), part) for part in parts]


def _split(group: list[T], name: Callable[[T], str]) -> Iterable[list[T]]:
    """Take rows apart of which two have one name."""
    return [group] if len({name(row) for row in group}) == len(group) else ([row] for row in group)


def unfolded_moves(rows: Sequence[Move]) -> Iterator[FoldedMove]:
    """Give each parameter a row of its own."""
    return (FoldedMove(name=move.name, moves=(move,)) for move in rows)


def _look_of(row: ParameterRow, shaped: TensorInfo | GradientStats | None) -> tuple[object, ...]:
    """Return what rows must have in common to share one, given what has the shape."""
    shape = None if shaped is None else (len(shaped.shape), shaped.dtype)
    return shape, row.is_missing, row.unmeasured, *_kind(row.stats)
