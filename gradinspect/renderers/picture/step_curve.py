"""The memory of whole steps as a curve: what was alive over time, one area for each kind, and the peak.

What comes in: a `StepMemory`. What goes out: SVG, also that of the page, which may color its parts by class.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Final, NamedTuple

from gradinspect.analyses.memory.step import (
    KIND_NAMES,
    KINDS,
    CurvePoint,
    StepMemory,
    StorageKind,
    by_device,
    bytes_by_kind,
    device_name,
    is_meant,
    on_device,
    peak_place,
)
from gradinspect.renderers.picture.charts import (
    HEIGHT,
    LEFT,
    MARGIN,
    SIZE,
    TOP,
    WIDTH,
    byte_ticks,
    chart,
    height_of,
    limit_line,
    text,
)
from gradinspect.renderers.picture.text_width import text_width
from gradinspect.units import format_bytes

# Paul Tol's bright scheme, which holds for color-blind readers; neighbors differ in lightness, which holds in print.
COLORS: Final[dict[StorageKind, str]] = {
    "parameter": "#4477aa", "buffer": "#66ccee", "optimizer_state": "#228833", "gradient": "#ccbb44",
    "saved": "#ee6677", "input": "#aa3377", "recomputed": "#dddddd", "temporary": "#888888",
}  # fmt: skip
LEGEND = TOP + HEIGHT + 58
ENTRY = 380  # from one column of the legend to the next
ROW = 18
FAR = 4  # peaks: a limit that is higher than that is said, not drawn
_HEIGHT_OF = re.compile(r'height="(\d+)"')


class _Scale(NamedTuple):
    num_points: int
    highest: int
    right: int

    def x(self, place: float) -> float:
        return LEFT + (self.right - LEFT) * place / max(self.num_points, 1)

    def y(self, num_bytes: float) -> float:
        return height_of(num_bytes, self.highest)


def render_step_curves(memory: StepMemory, limit: int | None = None) -> str:
    """Draw the curve of each device, one below the other.

    Args:
        memory: What was alive.
        limit: Available bytes, drawn as a line where they are meant.
    """
    pictures = [
        render_step_curve(one, limit if is_meant(memory, one) else None, is_one_of_many=bool(memory.others))
        for one in by_device(memory)
    ]
    if len(pictures) == 1:
        return pictures[0]
    parts, top = list[str](), 0
    for picture in pictures:
        parts.append(picture.rstrip().replace("<svg ", f'<svg y="{top}" ', 1))
        top += int(_HEIGHT_OF.findall(picture)[0])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" '
        'role="img">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def render_step_curve(
    memory: StepMemory, limit: int | None = None, *, is_one_of_many: bool = False, width: int = WIDTH
) -> str:
    """Draw the curve of one device.

    Args:
        memory: What was alive.
        limit: Available bytes, drawn as a line.
        is_one_of_many: Whether to name the device.
        width: Of the picture.
    """
    points = memory.curve
    drawn = 0 if limit is None or _is_far(memory, limit) else limit
    scale = _Scale(len(points), max([*(point.num_bytes for point in points), drawn, 1]), width - MARGIN)
    kinds = [kind for kind in KINDS if any(point.by_kind.get(kind) for point in points)]
    rows = _legend_rows(len(kinds), width)
    height = LEGEND + rows * ROW + 6
    parts = chain(
        _head(memory, is_one_of_many=is_one_of_many),
        byte_ticks(scale.highest, scale.right),
        _areas(points, kinds, scale),
        _phases(points, scale),
        _marks(memory, scale, limit),
        _legend(memory, kinds, rows),
    )
    return chart(f"Memory of {memory.source}, peak {format_bytes(memory.peak_bytes)}", height, parts, width)


def _is_far(memory: StepMemory, limit: int | None) -> bool:
    """Whether a limit is so high that below it there would be no curve to see."""
    return limit is not None and limit > FAR * memory.peak_bytes > 0


def _head(memory: StepMemory, *, is_one_of_many: bool) -> Iterator[str]:
    how = "measured" if memory.is_real else "predicted"
    where = f" on {device_name(memory.on)}" if is_one_of_many else on_device(memory)
    yield text(LEFT, 16, f"peak {format_bytes(memory.peak_bytes)}{where} ({how})", weight="bold")
    yield text(LEFT, 32, memory.source, "quiet")


def _areas(points: Sequence[CurvePoint], kinds: Sequence[StorageKind], scale: _Scale) -> Iterator[str]:
    below = [0] * len(points)
    for kind in kinds:
        above = [low + point.by_kind.get(kind, 0) for low, point in zip(below, points, strict=True)]
        upper = "".join(f"L{scale.x(n):.1f} {scale.y(top):.1f}H{scale.x(n + 1):.1f}" for n, top in enumerate(above))
        lower = "".join(
            f"L{scale.x(n + 1):.1f} {scale.y(low):.1f}H{scale.x(n):.1f}" for n, low in reversed([*enumerate(below)])
        )
        start = f"M{scale.x(0):.1f} {scale.y(below[0]):.1f}"
        yield f'<path class="area {kind}" d="{start}{upper}{lower}Z" fill="{COLORS[kind]}"/>'
        below = above


def _phases(points: Sequence[CurvePoint], scale: _Scale) -> Iterator[str]:
    """Mark where each phase and, below, each step begins, and name those that have room."""
    base = TOP + HEIGHT
    names = [(point.phase, f"step {point.step}" if point.step else "") for point in points]
    phases: Sequence[object] = [(point.step, point.phase) for point in points]
    for row, keys in enumerate((phases, [point.step for point in points])):
        for begin, end in _runs(keys):
            name = names[begin][row]
            yield f'<path class="grid" d="M{scale.x(begin):.1f} {base}v{(row + 1) * 20}" stroke="#999999"/>'
            if name and text_width(name, SIZE) + 6 < scale.x(end) - scale.x(begin):
                yield text(scale.x(begin) + 4, base + 14 + row * 20, name, "quiet")


def _runs(keys: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Yield from where to where keys are the same."""
    end = 0
    for _, group in groupby(keys):
        begin, end = end, end + len(list(group))
        yield begin, end


def _marks(memory: StepMemory, scale: _Scale, limit: int | None) -> Iterator[str]:
    if _is_far(memory, limit):
        yield text(scale.right, TOP - 5, f"limit {format_bytes(limit or 0)} ↑", "limit", anchor="end")
    elif limit is not None:
        yield from limit_line(limit, scale.highest, scale.right)
    highest = peak_place(memory)
    if highest is not None:
        x, y = scale.x(highest + 0.5), scale.y(memory.curve[highest].num_bytes)
        yield f'<path class="peak" d="M{x:.1f} {y:.1f}l-4 -8h8z" fill="#111111"/>'


def _legend_rows(count: int, width: int) -> int:
    return -(-count // max(width // ENTRY, 1))


def _legend(memory: StepMemory, kinds: Sequence[StorageKind], rows: int) -> Iterator[str]:
    at_peak = bytes_by_kind(memory)
    for place, kind in enumerate(kinds):
        x, y = LEFT + (place // rows) * ENTRY, LEGEND + (place % rows) * ROW
        yield f'<rect class="area {kind}" x="{x}" y="{y - 10}" width="12" height="12" fill="{COLORS[kind]}"/>'
        yield text(x + 18, y, f"{KIND_NAMES[kind]}: {format_bytes(at_peak.get(kind, 0))} at the peak")
