"""What sizes need as a picture: peaks by size, or, of two sizes, the largest one by the other.

What comes in: the table of a search. What goes out: SVG.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from gradinspect.analyses.planning.rank_numbers import WORLD_SIZE
from gradinspect.analyses.planning.size_pairs import PairTable
from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.renderers.picture.charts import (
    HEIGHT,
    LEFT,
    RIGHT,
    SIZE,
    TOP,
    byte_ticks,
    chart,
    height_of,
    limit_line,
    text,
)
from gradinspect.renderers.picture.text_width import text_width
from gradinspect.units import format_bytes

BOTTOM = TOP + HEIGHT
TOTAL = BOTTOM + 50
INSET = 24  # of the first and the last number
HEADROOM = 0.5  # doublings, for a number above a point
# Paul Tol's bright scheme, which holds for color-blind readers.
COLORS = ("#4477aa", "#ee6677", "#228833", "#aa3377")
_Points: TypeAlias = Sequence[tuple[float, float]]


class _Axis(NamedTuple):
    """Where numbers are from left to right: along a line, or doubled from step to step."""

    numbers: Sequence[int]
    is_doubled: bool

    def x(self, number: float) -> float:
        start, end = self._along(0 if not self.is_doubled else min(self.numbers)), self._along(max(self.numbers))
        share = (self._along(number) - start) / max(end - start, 1e-9)
        return LEFT + INSET + (RIGHT - LEFT - 2 * INSET) * share

    def _along(self, number: float) -> float:
        return math.log2(number) if self.is_doubled else number


def render_size_curve(table: SizeTable) -> str:
    """Draw the peak of each size that was tried."""
    points = [(row.size, row.peak_bytes) for row in table.rows if not row.failure]
    axis = _Axis([size for size, _ in points], is_doubled=table.name == WORLD_SIZE or table.limit is None)
    highest = max([*(peak for _, peak in points), table.limit or 0])
    limit = table.limit
    found = f": {table.best} fits" if table.best is not None else "" if limit is None else ": none fits"
    parts = chain(
        _head(f"peak by {table.name}{found}", table.source),
        byte_ticks(highest),
        _numbers(axis, table.name),
        _line([(axis.x(size), height_of(peak, highest)) for size, peak in points], COLORS[0]),
        [] if limit is None else limit_line(limit, highest),
    )
    return chart(f"Peaks of {table.source} by {table.name}", TOTAL, parts)


def render_pair_curve(table: PairTable) -> str:
    """Draw the largest second size by the first one; without a limit, peaks by the second one."""
    title = f"Peaks of {table.source} by {table.names[0]} and {table.names[1]}"
    return chart(title, TOTAL, _peaks(table) if table.limit is None else _largest(table, table.limit))


def _peaks(table: PairTable) -> Iterator[str]:
    first, second = table.names
    lines = {row.number: [(one.size, one.peak_bytes) for one in row.rows if not one.failure] for row in table.rows}
    axis = _Axis([one.size for row in table.rows for one in row.rows], is_doubled=True)
    highest = max(peak for line in lines.values() for _, peak in line)
    yield from _head(f"peak by {second}, a line for each {first}", table.source)
    yield from byte_ticks(highest)
    yield from _numbers(axis, second)
    place: float = LEFT + INSET
    for color, (number, points) in zip(COLORS, lines.items(), strict=False):
        yield from _line([(axis.x(size), height_of(peak, highest)) for size, peak in points], color)
        label = f"{first} {number}"
        yield f'<path d="M{place:.1f} {TOP + 8}h16" stroke="{color}" stroke-width="2"/>'
        yield text(place + 22, TOP + 12, label)
        place += 46 + text_width(label, SIZE)


def _largest(table: PairTable, limit: int) -> Iterator[str]:
    """Draw where the second size ceases to fit, both doubled from step to step."""
    first, second = table.names
    yield from _head(f"largest {second} by {first}, limit {format_bytes(limit)}", table.source)
    found = [(row.number, row.largest) for row in table.rows if row.largest is not None]
    if not found:
        yield text(LEFT, TOP + 20, f"no {second} fits")
        return
    axis = _Axis([number for number, _ in found], is_doubled=True)
    low = math.floor(math.log2(min(size for _, size in found)))
    high = max(math.ceil(math.log2(max(size for _, size in found)) + HEADROOM), low + 1)

    def y(size: float) -> float:
        return BOTTOM - HEIGHT * (math.log2(size) - low) / (high - low)

    for power in range(low, high + 1):
        yield f'<path class="grid" d="M{LEFT} {y(2**power):.1f}H{RIGHT}" stroke="#dddddd"/>'
        yield text(LEFT - 6, y(2**power) + 4, str(2**power), "quiet", anchor="end")
    points = [(axis.x(number), y(size)) for number, size in found]
    yield from _fitting(points)
    yield from _numbers(axis, first)
    yield from _line(points, COLORS[0])
    yield from (_number(str(size), point) for (_, size), point in zip(found, points, strict=True))


def _number(words: str, point: tuple[float, float]) -> str:
    """Write a number above a point, or below it where there is no room."""
    x, y = point
    return text(x, y - 8 if y > TOP + 20 else y + 18, words, anchor="middle")


def _fitting(points: _Points) -> Iterator[str]:
    """Fill what fits."""
    along = "".join(f"L{x:.1f} {y:.1f}" for x, y in points)
    (first, _), (last, _) = points[0], points[-1]
    yield f'<path class="fits" d="M{first:.1f} {BOTTOM}{along}L{last:.1f} {BOTTOM}Z" fill="#4477aa" opacity="0.15"/>'


def _head(what: str, source: str) -> Iterator[str]:
    yield text(LEFT, 16, f"{what} (predicted)", weight="bold")
    yield text(LEFT, 32, source, "quiet")


def _numbers(axis: _Axis, name: str) -> Iterator[str]:
    """Write the numbers below the picture that have room, and what they are."""
    yield f'<path class="grid" d="M{LEFT} {BOTTOM}H{RIGHT}" stroke="#999999"/>'
    end = 0.0
    for number in sorted(set(axis.numbers)):
        x, half = axis.x(number), text_width(str(number), SIZE) / 2
        if x - half > end:
            end = x + half + 6
            yield text(x, BOTTOM + 16, str(number), "quiet", anchor="middle")
    yield text((LEFT + RIGHT) / 2, BOTTOM + 36, name, anchor="middle")


def _line(points: _Points, color: str) -> Iterator[str]:
    along = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    yield f'<path class="line" d="M{along}" fill="none" stroke="{color}" stroke-width="2"/>'
    yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points)
