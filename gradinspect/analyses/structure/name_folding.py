"""Names that differ in numbers, as one: `h.0-11.attn.weight`, `up1-4`.

What comes in: dotted names. What goes out: a name for each group, with those it stands for.

NOTE [One fold]
On every screen, rows of equal blocks that say the same are one row, from two on, with the least and the greatest of
their numbers, however few rows there are. Blocks are equal if the modules inside of them are, however deep, whatever
these hold and whatever their sizes, which are ranges then. Rows that were chosen or sorted stay apart, as those that
`--full` asks for. `repeats` is the same for neighboring nodes and blocks of modules: only where nodes are shown, in
`trace` and pictures, a block with other nodes stands apart, as a first layer whose input needs no gradient does.

NOTE [Exactly its members]
A folded name stands for all combinations of its numbers, so what it is given must be all of them: of
`layer1.0.conv1`, `layer1.1.conv1` and `layer2.0.conv1` the last is a row of its own, and `h.0-1.a.1-2` is four names.
"""

import math
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Final, NamedTuple, TypeAlias, TypeVar

from gradinspect.analyses.structure.call_names import INDEX
from gradinspect.graph import Record

MAX_ROWS: Final = 40  # of a folded table
MIN_FOR_ODD: Final = 3  # of two, neither is the odd one
ODD: Final = 3.0  # times the median of the others
MAX_INDICES: Final = 4  # named one by one, and ranges in a list
MAX_COLUMNS: Final = 6  # numbers in which folded names differ: nobody reads more
PIECES: Final = re.compile(f"({INDEX.pattern})")
NUMBER: Final = re.compile(r"(?<![\w.])\d+(?![\w.])")  # those in the name of a dtype are not sizes
ELEMENT: Final = re.compile(r"(.+)\[(\d+)\]")  # `tensors[1]`, an argument that is in a list
T = TypeVar("T")
Names: TypeAlias = tuple[str | None, ...]
Numbers: TypeAlias = tuple[int, ...]


class OddOne(Record, frozen=True):
    """The one of equal blocks whose number is far from those of the others."""

    name: str
    times: float  # the median of the others


def pattern_of(name: str) -> str:
    """Return what names that differ in numbers have in common: `h.*.attn`, `up*`."""
    return INDEX.sub("*", name)


def alike(rows: Iterable[T], names: Callable[[T], Names], look: Callable[[T], Hashable]) -> Iterator[list[T]]:
    """Yield rows in groups of those of equal blocks, each in the place of its first: NOTE [Exactly its members].

    Args:
        rows: Of any table.
        names: The names in a row that may differ in their numbers.
        look: What else a row says, which must be equal.
    """
    given = list(rows)
    read = _Names()
    patterns: dict[Names, tuple[str | None, ...]] = {}
    groups: dict[Hashable, _Group] = {}
    for place, row in enumerate(given):
        named = names(row)
        pattern = patterns.get(named)
        if pattern is None:
            pattern = patterns[named] = tuple([name and read.pattern(name) for name in named])
        key = pattern, look(row)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group({}, {})
        if group.first.setdefault(named, place) != place:
            group.more.setdefault(named, []).append(place)
    taken = {name for name in read.patterns if "-" in name or "," in name}
    parts = [
        sorted(place for named in part for place in group.places(named))
        for group in groups.values()
        for part in _not_taken(_exact_parts(list(group.first), read), taken)
    ]
    yield from ([given[place] for place in part] for part in sorted(parts))


class _Group(NamedTuple):
    """Rows that say the same: where each name stands first, and where again.

    NOTE [Few objects for the collector]
    Names and places of 200,000 rows are texts, numbers and plain tuples of these, which the garbage collector leaves
    alone. With a list or a named tuple for each, it took longer than all the rest.
    """

    first: dict[Names, int]
    more: dict[Names, list[int]]

    def places(self, named: Names) -> Iterator[int]:
        """Yield the rows with some names."""
        yield self.first[named]
        yield from self.more.get(named, ())


def fold_names(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield names that differ in numbers as one, `h.0-11.attn.weight`, with those it stands for."""
    for group in alike(dict.fromkeys(names), lambda name: (name,), lambda _: None):
        yield _with_numbers(group[0], _columns(group)), group


def fold_name(names: Iterable[str]) -> str | None:
    """Name different things by their numbers, `h.0-11` or `up1-4`; None if no one name stands for just these."""
    given = list(dict.fromkeys(names))
    folded = list(fold_names(given)) if len(given) > 1 else []
    return folded[0][0] if len(folded) == 1 else None


def elements_together(names: Sequence[str]) -> str:
    """Name successive elements of one list, `tensors[1-198]`; "" for other names."""
    found = [(match[1], int(match[2])) for name in names if (match := ELEMENT.fullmatch(name))]
    if len(found) == len(names) > 1 and found == [(found[0][0], found[0][1] + step) for step in range(len(found))]:
        return f"{found[0][0]}[{found[0][1]}-{found[-1][1]}]"
    return ""


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
    """Name some things by their numbers, `h.0-3.attn`, and by several names if one would stand for others, too."""
    given = list(dict.fromkeys(names))
    read = list(map(_read, given))
    if len({pattern for pattern, _ in read}) == 1:
        columns = [sorted(set(column)) for column in zip(*(numbers for _, numbers in read), strict=True)]
        is_exact = math.prod(map(len, columns)) == len(given)
        if is_exact and all(len(list(_short_lists(column))) == 1 for column in columns):
            return _with_numbers(given[0], columns)
    places = dict(zip(given, read, strict=True))
    return ", ".join(name for name, _ in fold_names(sorted(given, key=places.__getitem__)))


def with_indices_of(name: str, names: Iterable[str]) -> str:
    """Write into a name, or the end of one, the numbers of all that it stands for, which are all combinations."""
    columns = _columns(names)
    return _with_numbers(name, columns[len(columns) - len(INDEX.findall(name)) :])


class _Names:
    """Names as they are read, each once: NOTE [Few objects for the collector]."""

    def __init__(self) -> None:
        """Begin with none."""
        self.patterns: dict[str, str] = {}
        self._numbers: dict[str, Numbers] = {}
        self._parts: dict[str, tuple[str, Numbers]] = {}

    def pattern(self, name: str) -> str:
        """Return what a name has in common with others."""
        known = self.patterns.get(name)
        if known is not None:
            return known
        patterns: list[str] = []
        numbers: list[int] = []
        for part in name.split("."):  # an index ends with its part, and most parts are those of other names, too
            read = self._parts.get(part)
            if read is None:
                read = self._parts[part] = _read(part)
            patterns.append(read[0])
            numbers += read[1]
        self._numbers[name] = tuple(numbers)
        found = self.patterns[name] = sys.intern(".".join(patterns))
        return found

    def numbers(self, name: str | None) -> Numbers:
        """Return the numbers in a name whose pattern was asked for."""
        return self._numbers[name] if name else ()


def _read(name: str) -> tuple[str, Numbers]:
    """Return a name without its numbers, and these."""
    pieces = PIECES.split(name)
    return "*".join(pieces[::2]), tuple(map(int, pieces[1::2]))


def _with_numbers(name: str, columns: Iterable[Sequence[int]]) -> str:
    texts = (listed_numbers(sorted(set(column))) for column in columns)
    return INDEX.sub(lambda _: next(texts), name)


def _columns(names: Iterable[str]) -> list[Numbers]:
    """Return the numbers in names of one pattern, those in one place together."""
    return list(zip(*(_read(name)[1] for name in names), strict=True))


def listed_numbers(numbers: Sequence[int]) -> str:
    """Write different numbers that are in order: `0-11`, `0,2`, `0,2..10`, `0-3,7,9-11`."""
    ranges = _ranges(numbers)
    if len(ranges) > 1 and len(numbers) <= MAX_INDICES:
        return ",".join(map(str, numbers))
    if len(numbers) > MAX_INDICES and len(ranges) > 1 and _is_even(numbers):
        return f"{numbers[0]},{numbers[1]}..{numbers[-1]}"
    return ",".join(f"{some[0]}-{some[-1]}" if len(some) > 1 else str(some[0]) for some in ranges)


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    ranges = [[numbers[0]]]
    for before, number in pairwise(numbers):
        if number == before + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ranges


def _is_even(numbers: Sequence[int]) -> bool:
    return len({after - before for before, after in pairwise(numbers)}) == 1


def _not_taken(parts: Iterable[list[Names]], taken: set[str]) -> Iterator[list[Names]]:
    """Fold nothing to a name that another one has: a key of a ModuleDict may be `up1-4`."""
    for part in parts:
        labels = (name_of_all(column) for column in zip(*part, strict=True)) if taken else ()
        if len(part) > 1 and not taken.isdisjoint(labels):
            yield from ([named] for named in part)
        else:
            yield part


def _exact_parts(several: Sequence[Names], read: _Names) -> Iterator[list[Names]]:
    """Split different names of one pattern: NOTE [Exactly its members]."""
    columns = _free_columns(several, read) if len(several) > 1 else []
    if not 0 < len(columns) <= MAX_COLUMNS:
        yield from ([named] for named in several)
        return
    by_numbers = dict(zip(zip(*columns, strict=True), several, strict=True))
    for box in _boxes(list(by_numbers)):
        for lists in product(*map(_short_lists, box)):
            yield [by_numbers[numbers] for numbers in product(*lists)]


def _free_columns(several: Sequence[Names], read: _Names) -> list[Numbers]:
    """Return the numbers in which names differ, but those of a row's second name that move with one of its first."""
    free: list[Numbers] = []
    for names in zip(*several, strict=True):
        moved = {_moves(column) for column in free}
        columns = zip(*map(read.numbers, names), strict=True)
        for column in (column for column in columns if len(set(column)) > 1):
            if moved and _moves(column) in moved:
                moved.remove(_moves(column))
            else:
                free.append(column)
    return free


def _moves(column: Numbers) -> Numbers:
    return tuple(number - column[0] for number in column)


def _boxes(points: Sequence[Numbers]) -> Iterator[tuple[Numbers, ...]]:
    """Split different points into such as are all combinations of their numbers, as few as the best first cut gives."""
    columns = [tuple(sorted(set(column))) for column in zip(*points, strict=True)]
    if math.prod(map(len, columns)) == len(points):
        yield tuple(columns)
        return
    splits = [_by_rest(points, axis) for axis in range(len(points[0]))]
    axis = min(range(len(splits)), key=lambda at: (len(splits[at]), sum(map(len, map(_ranges, splits[at].values())))))
    for rest, numbers in splits[axis].items():
        for box in _boxes(sorted(rest)):
            yield (*box[:axis], tuple(numbers), *box[axis:])


def _by_rest(points: Iterable[Numbers], axis: int) -> Mapping[frozenset[Numbers], list[int]]:
    """Return the numbers on one axis that all other numbers are the same for, by these."""
    rests: dict[int, set[Numbers]] = {}
    for point in points:
        rests.setdefault(point[axis], set()).add((*point[:axis], *point[axis + 1 :]))
    numbers: dict[frozenset[Numbers], list[int]] = {}
    for number in sorted(rests):
        numbers.setdefault(frozenset(rests[number]), []).append(number)
    return numbers


def _short_lists(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Split numbers so that each part is written with few ranges."""
    if len(numbers) <= MAX_INDICES or _is_even(numbers):
        yield list(numbers)
        return
    ranges = _ranges(numbers)
    for first in range(0, len(ranges), MAX_INDICES):
        yield [number for some in ranges[first : first + MAX_INDICES] for number in some]
