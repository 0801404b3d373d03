"""Keep the titles of frames legible where an arrow passes them.

What comes in: SVG written by Graphviz, which draws the frames of module calls before the arrows, so that an arrow into
a frame strikes through its title. What goes out: the same picture, with each title above the arrows, on an opaque strip
in the color of its frame.
"""

import re
from collections.abc import Iterator
from html import unescape

from gradinspect.renderers.picture.svg.helvetica import helvetica_width
from gradinspect.renderers.picture.text_width import BOLD, text_width

FRAME = re.compile(r'<g id="\w+" class="cluster">')
OUTLINE = re.compile(r'<path fill="(#\w+)".* d="([^"]*)"')
X = re.compile(r"(-?[\d.]+),")
TEXT = re.compile(r'<text .*?\bx="(-?[\d.]+)" y="(-?[\d.]+)".*?>(.*)</text>')
PIECE = re.compile(r'(font-weight="bold")?[^>]*?font-size="([\d.]+)"[^>]*>([^<]*)')
ASCENT, HEIGHT = 9.0, 12.0  # points above the baseline, and in all
BORDER = 1.5  # points inside the outline of a frame, which a strip must not cover


def raise_titles(svg: str) -> str:
    """Move the titles of frames to the end, where they are drawn last."""
    titles: list[str] = []
    lines = list(_without_titles(svg.split("\n"), titles))
    if not titles:
        return svg
    end = max(place for place, line in enumerate(lines) if line == "</g>")
    return "\n".join((*lines[:end], '<g class="titles">', *titles, "</g>", *lines[end:]))


def _without_titles(lines: list[str], titles: list[str]) -> Iterator[str]:
    is_frame, fill, right = False, "none", 0.0
    for line in lines:
        if line.startswith("<g id="):
            is_frame = is_frame if line.startswith('<g id="a_') else FRAME.match(line) is not None
        elif found := OUTLINE.match(line):
            fill, right = found[1], max(map(float, X.findall(found[2])))
        if is_frame and line.startswith("<text"):
            titles.append(_strip(line, fill, right - BORDER) + line)
        else:
            yield line


def _strip(line: str, fill: str, right: float) -> str:
    """Write a rectangle below a title. A stroke around its letters would cover the end of the piece before."""
    match = TEXT.fullmatch(line)
    if match is None:
        return ""
    width = min(sum(_width(unescape(text), float(size), bold) for bold, size, text in PIECE.findall(line)),
                right - float(match[1]))  # fmt: skip
    place = f'x="{match[1]}" y="{float(match[2]) - ASCENT:.2f}" width="{width:.2f}" height="{HEIGHT:g}"'
    return f'<rect {place} fill="{fill}" stroke="none"/>'


def _width(text: str, size: float, bold: str) -> float:
    """Return the width of a text in Helvetica, or in the wider font that a viewer may have in its place."""
    known = helvetica_width(text, size, is_bold=bool(bold)) or 0.0
    return max(known, text_width(text, size) * (BOLD if bold else 1))
