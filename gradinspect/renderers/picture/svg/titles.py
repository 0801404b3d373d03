"""Keep the titles of frames legible where an arrow passes them.

What comes in: SVG written by Graphviz, which draws the frames of module calls before the arrows, so that an arrow into
a frame strikes through its title. What goes out: the same picture, with each title above the arrows, on an opaque strip
in the color of its frame.
"""

import re
from collections.abc import Iterator
from html import unescape

from gradinspect.renderers.picture.text_width import BOLD, text_width

FRAME = re.compile(r'<g id="\w+" class="cluster">')
FILL = re.compile(r'<path fill="(#\w+)"')
TEXT = re.compile(r'<text .*?\bx="(-?[\d.]+)" y="(-?[\d.]+)".*?>(.*)</text>')
PIECE = re.compile(r'(font-weight="bold")?[^>]*?font-size="([\d.]+)"[^>]*>([^<]*)')
ASCENT, HEIGHT = 9.0, 12.0  # points above the baseline, and in all


def raise_titles(svg: str) -> str:
    """Move the titles of frames to the end, where they are drawn last."""
    titles: list[str] = []
    lines = list(_without_titles(svg.split("\n"), titles))
    if not titles:
        return svg
    end = max(place for place, line in enumerate(lines) if line == "</g>")
    return "\n".join((*lines[:end], '<g class="titles">', *titles, "</g>", *lines[end:]))


def _without_titles(lines: list[str], titles: list[str]) -> Iterator[str]:
    is_frame, fill = False, "none"
    for line in lines:
        if line.startswith("<g id="):
            is_frame = is_frame if line.startswith('<g id="a_') else FRAME.match(line) is not None
        elif found := FILL.match(line):
            fill = found[1]
        if is_frame and line.startswith("<text"):
            titles.append(_strip(line, fill) + line)
        else:
            yield line


def _strip(line: str, fill: str) -> str:
    """Write a rectangle below a title. A stroke around its letters would cover the end of the piece before."""
    match = TEXT.fullmatch(line)
    if match is None:
        return ""
    pieces = PIECE.findall(line)
    width = sum(text_width(unescape(text), float(size)) * (BOLD if is_bold else 1) for is_bold, size, text in pieces)
    place = f'x="{match[1]}" y="{float(match[2]) - ASCENT:.2f}" width="{width:.2f}" height="{HEIGHT:g}"'
    return f'<rect {place} fill="{fill}" stroke="none"/>'
