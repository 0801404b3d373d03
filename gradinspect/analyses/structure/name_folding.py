"""Names that differ in their indices, as one: `h.0-11.attn.weight`.

What comes in: dotted names. What goes out: a name for each group, with those it stands for.

NOTE [One fold]
On every screen, rows of equal blocks that say the same are one row, from two on, with the least and the greatest of
their numbers. A list of nodes, tensors or parameters that fits a screen is read as it is; if it is too long even when
it is folded, rows that differ only in sizes are one, too. `repeats` is the same for neighboring nodes.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from gradinspect.analyses.structure.call_names import INDEX
from gradinspect.graph import Record

FOLD_ABOVE: Final = 24  # rows: fewer fit a screen
MAX_ROWS: Final = 40  # of a folded table
MIN_FOR_ODD: Final = 3  # of two, neither is the odd one
ODD: Final = 3.0  # times the median of the others
MAX_INDICES: Final = 4  # named one by one
NUMBER: Final = re.compile(r"(?<![\w.])\d+(?![\w.])")  # those in the name of a dtype are no sizes
T = TypeVar("T")


class OddOne(Record, frozen=True):
    """The one of equal blocks whose number is far from those of the others."""

    name: str
    times: float  # the median of the others


def alike(
    rows: Iterable[T], names: Callable[[T], tuple[str | None, ...]], look: Callable[[T], Hashable]
) -> Iterator[list[T]]:
    """Yield rows in groups of those of equal blocks, each in the place of its first.

    Args:
        rows: Of any table.
        names: The names in a row that may differ in their indices.
        look: What else a row says, which must be equal.
    """
    groups: dict[Hashable, list[T]] = {}
    for row in rows:
        patterns = tuple(name and INDEX.sub("*", name) for name in names(row))
        groups.setdefault((patterns, look(row)), []).append(row)
    yield from groups.values()


def fold_names(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield names that differ in their indices as one, `h.0-11.attn.weight`, with those it stands for."""
    for group in alike(dict.fromkeys(names), lambda name: (name,), lambda _: None):
        yield name_by_indices(group), group


def odd_one(values: Sequence[float]) -> tuple[int, float] | None:
    """Return the place of the value farthest from the median of the others, and how many times it that is.

    None if it is less than `ODD` times away, if the others are farther from each other than half as far (where numbers
    fall from block to block, the last is not odd), or if there are too few to tell.
    """
    if len(values) < MIN_FOR_ODD:
        return None
    ordered = sorted(values)
    factors = [_times(value, _median_of_others(ordered, bisect_left(ordered, value))) for value in values]
    distances = [abs(math.log(factor)) if factor > 0 else math.inf for factor in factors]
    place = max(range(len(values)), key=distances.__getitem__)
    others = [value for other, value in enumerate(values) if other != place]
    is_odd = distances[place] >= math.log(ODD) and _spread(others) <= distances[place] / 2
    return (place, factors[place]) if is_odd else None


def named_odd_one(names: Sequence[str], values: Sequence[float]) -> OddOne | None:
    """Name the value farthest from the others, unless it is near them or its name stands for several."""
    odd = odd_one(values)
    return OddOne(names[odd[0]], odd[1]) if odd is not None and names.count(names[odd[0]]) == 1 else None


def format_times(times: float) -> str:
    """Write how many times the others something is: `3.1 times`, `0.2 times`."""
    return f"{times:,.1f} times" if 0.05 <= times < 1e6 else f"{times:.1e} times"


def _median_of_others(ordered: Sequence[float], place: int) -> float:
    """Return the median without one of the values, in a time that does not depend on how many there are."""
    half, is_odd = divmod(len(ordered) - 1, 2)
    middle = (half, half) if is_odd else (half - 1, half)
    low, high = (ordered[index + (index >= place)] for index in middle)
    return (low + high) / 2


def _spread(values: Sequence[float]) -> float:
    """Return the distance between the least and the greatest, as that of a number from its others is measured."""
    least, most = min(values), max(values)
    return math.log(most / least) if least > 0 else math.nan if most > 0 else 0.0


def _times(value: float, others: float) -> float:
    return value / others if others else 1.0 if not value else math.inf


def without_numbers(text: str) -> str:
    """Write a text as it is for all sizes: `f32[0, 0]`."""
    return NUMBER.sub("0", text)


def numbers_between(texts: Sequence[str]) -> str:
    """Write texts that differ in their numbers as one: `f32[13..34, 32]`."""
    columns = zip(*(map(int, NUMBER.findall(text)) for text in texts), strict=True)
    ranges = (f"{min(column)}..{max(column)}" if len(set(column)) > 1 else str(column[0]) for column in columns)
    return NUMBER.sub(lambda _: next(ranges), texts[0])


def name_of_all(names: Iterable[str | None]) -> str | None:
    """Name things that differ in their indices, or have no name: None then."""
    given = {name for name in names if name is not None}
    return name_by_indices(given) if given else None


def name_by_indices(names: Iterable[str]) -> str:
    """Name things that differ in their indices by these, whatever others there are: `h.0-3.attn`."""
    given = set(names)
    return with_indices_of(next(iter(given)), given)


def with_indices_of(name: str, names: Iterable[str]) -> str:
    """Write into a name, or the end of one, the indices of all that it stands for."""
    columns = list(zip(*map(INDEX.findall, set(names)), strict=True))
    last = columns[len(columns) - len(INDEX.findall(name)) :]
    return _with_indices(name, (_listed(sorted(set(map(int, column)))) for column in last))


def _with_indices(path: str, texts: Iterable[str]) -> str:
    remaining = iter(texts)
    return INDEX.sub(lambda _: next(remaining), path)


def _listed(indices: Sequence[int]) -> str:
    if len(indices) == 1:
        return str(indices[0])
    if indices[-1] - indices[0] == len(indices) - 1:
        return f"{indices[0]}-{indices[-1]}"
    return ",".join(map(str, indices)) if len(indices) <= MAX_INDICES else f"{indices[0]},{indices[1]}..{indices[-1]}"
