"""Keep the titles of frames legible where an arrow passes them.

What comes in: SVG written by Graphviz, which draws the frames of module calls before the arrows, so that an arrow into
a frame strikes through its title. What goes out: the same picture, with each title above the arrows, on an opaque strip
in the color of its frame.
"""

import re
from collections.abc import Iterator

FRAME = re.compile(r'<g id="\w+" class="cluster">')
FILL = re.compile(r'<path fill="(#\w+)"')
STRIP = 5  # points around the letters


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
            strip = f'paint-order="stroke" stroke="{fill}" stroke-width="{STRIP}" stroke-linejoin="round"'
            titles.append(f"<text {strip}{line.removeprefix('<text')}")
        else:
            yield line
