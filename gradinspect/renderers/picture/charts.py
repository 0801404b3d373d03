"""Parts that charts share: text, and the ticks of an axis of bytes."""

import math
from collections.abc import Iterator
from html import escape
from typing import Final

from gradinspect.renderers.picture.svg.helvetica import FONTS
from gradinspect.units import escape_control, format_bytes

WIDTH, LEFT, TOP, HEIGHT = 860, 74, 46, 300
MARGIN = 14
RIGHT = WIDTH - MARGIN
NUM_TICKS = 5
SIZE = 11  # of text
LIMIT: Final = 'stroke="#bb0000" stroke-width="1.5" stroke-dasharray="6 4"'


def height_of(num_bytes: float, highest: float) -> float:
    """Return where a number of bytes is, on an axis that begins with 0."""
    return TOP + HEIGHT * (1 - num_bytes / max(highest, 1))


def byte_ticks(highest: float, right: int = RIGHT) -> Iterator[str]:
    """Draw the ticks of an axis of bytes."""
    step = _nice(highest / NUM_TICKS)
    for number in range(int(highest / step) + 1):
        y = height_of(number * step, highest)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}" stroke="#dddddd"/>'
        yield text(LEFT - 6, y + 4, format_bytes(round(number * step)), "quiet", anchor="end")


def _nice(num_bytes: float) -> float:
    """Round to 1, 2, 5 ... of a binary unit, so that ticks read well."""
    unit = 1024.0 ** max(int(math.log(max(num_bytes, 1), 1024)), 0)
    return unit * next(nice for nice in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1024) if nice >= num_bytes / unit)


def limit_line(limit: int, highest: float, right: int = RIGHT) -> Iterator[str]:
    """Draw available memory as a line."""
    y = height_of(limit, highest)
    yield f'<path class="limit" d="M{LEFT} {y:.1f}H{right}" {LIMIT}/>'
    yield text(right, y - 5, f"limit {format_bytes(limit)}", "limit", anchor="end")


def chart(title: str, height: int, parts: Iterator[str], width: int = WIDTH) -> str:
    """Write a picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(escape_control(title))}" font-family="{FONTS}" '
        f'font-size="{SIZE}">\n'
        f'<rect class="paper" width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, css: str = "ink", *, anchor: str = "start", weight: str = "normal") -> str:
    """Write text."""
    color = {"ink": "#111111", "quiet": "#555555", "limit": "#bb0000"}[css]
    around = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"' if css == "limit" else ""  # it stands on areas
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    look = f'font-weight="{weight}" fill="{color}"{around}'
    return f'<text class="{css}" {place} {look}>{escape(escape_control(words))}</text>'
