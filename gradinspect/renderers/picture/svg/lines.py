"""Keep the text of an SVG together when the viewer's font differs from the one Graphviz measured.

What comes in: SVG written by Graphviz. What goes out: the same picture, with each line of a label as one text element.

Graphviz writes a separate text element for each change of font, positioned by the widths it knows. With another font, a
browser leaves gaps between them or lets them overlap, and centered text is off center. A single text element with spans
flows correctly in any font; in the box of a node it is anchored in the middle.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

TEXT = re.compile(r"<text ([^>]*)>(.*)</text>")
GROUP = re.compile(r'<g [^>]*class="(\w+)"')
SHAPE = re.compile(r'<(?:polygon|path|ellipse) .*(?: points| d)="([^"]*)"')
ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
X = re.compile(r"(-?[\d.]+),-?[\d.]+")
OWN = {"x", "y", "text-anchor", "xml:space"}  # attributes of the line; the rest belong to its parts
SPACES = (" ", "&#160;", "\xa0")


class _Piece(NamedTuple):
    attributes: dict[str, str]
    content: str


def join_lines(svg: str) -> str:
    """Join the pieces of each line."""
    return "\n".join(_joined(svg.split("\n")))


def _joined(lines: Sequence[str]) -> Iterator[str]:
    kind, middle, num_shapes = "", 0.0, 0
    pieces: list[_Piece] = []
    for line in lines:
        match = TEXT.fullmatch(line)
        if match is not None:
            pieces.append(_Piece(dict(ATTRIBUTE.findall(match[1])), match[2]))
            continue
        if pieces:
            yield from _texts(pieces, kind, middle if kind == "node" and num_shapes == 1 else None)
            pieces = []
        if group := GROUP.match(line):
            kind, num_shapes = group[1], 0
        elif kind == "node" and (shape := SHAPE.match(line)):
            if not num_shapes and (xs := [float(x) for x in X.findall(shape[1])]):
                middle = (min(xs) + max(xs)) / 2
            num_shapes += 1
        yield line


def _texts(pieces: Sequence[_Piece], kind: str, middle: float | None) -> Iterator[str]:
    """Write adjacent pieces as one text; in the caption, the cells of a row stay separate."""
    starts = [
        place == 0
        or piece.attributes.get("y") != pieces[place - 1].attributes.get("y")
        or (kind in {"graph", "edge"} and not piece.content.startswith(SPACES))
        for place, piece in enumerate(pieces)
    ]
    for _, group in groupby(zip(accumulate(starts), pieces, strict=True), key=lambda pair: pair[0]):
        yield _text([piece for _, piece in group], middle)


def _text(line: Sequence[_Piece], middle: float | None) -> str:
    first = line[0].attributes
    if middle is None and len(line) == 1:
        return f"<text {_written(first)}>{line[0].content}</text>"
    anchor = (
        {"text-anchor": "start", "x": first["x"]} if middle is None else {"text-anchor": "middle", "x": f"{middle:.2f}"}
    )
    parts = "".join(map(_part, line))
    return f'<text xml:space="preserve" {_written(anchor)} y="{first["y"]}">{parts}</text>'


def _part(piece: _Piece) -> str:
    attributes = _written({name: value for name, value in piece.attributes.items() if name not in OWN})
    return f"<tspan{attributes and ' '}{attributes}>{piece.content}</tspan>"


def _written(attributes: dict[str, str]) -> str:
    return " ".join(f'{name}="{value}"' for name, value in attributes.items())
