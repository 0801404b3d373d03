"""Let the text of an SVG be as wide as in Helvetica, for which graphviz-pure draws its boxes.

What comes in: SVG by graphviz-pure, its lines joined. What goes out: the same picture, in which a viewer with a wider
font condenses the text instead of letting it run over the border of its box. Arial, Liberation Sans and Nimbus Sans
have the same widths, so nothing changes there. The system's `dot` measures with the fonts of the machine instead.
A program that turns SVG into a bitmap may know no such width, so that all text names fonts that have it, whichever of
them is there. DejaVu Sans, which many machines have alone, is a seventh wider; its condensed form is a little wider in
bold alone.

Source of the widths: Adobe's font metrics of Helvetica and Helvetica-Bold, in thousandths of the size.
"""

import html
import re
from collections.abc import Iterator
from typing import Final

_TEXT: Final = re.compile(r"<text ([^>]*)>(.*)</text>")
_PART: Final = re.compile(r"<tspan ([^>]*)>([^<]*)</tspan>")
_SIZE: Final = re.compile(r'font-size="([\d.]+)"')
_FIRST: Final = ord(" ")
_WRITTEN: Final = 'font-family="Helvetica,sans-Serif"'  # by Graphviz, whose own quotes in text are entities
FONTS: Final = "Helvetica,Arial,Liberation Sans,Nimbus Sans,DejaVu Sans Condensed,sans-serif"


def _widths(text: str) -> dict[str, int]:
    numbers = [*map(int, text.split())]
    others = {"\xa0": numbers[0], "·": 278, "×": 584, "–": 556, "—": 1000, "…": 1000}
    return {**{chr(_FIRST + place): number for place, number in enumerate(numbers)}, **others}


_REGULAR: Final = _widths(
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 "
    "584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 "
    "278 556 500 722 500 500 500 334 260 334 584"
)
_BOLD: Final = _widths(
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 333 333 "
    "584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 333 278 333 584 556 333 556 611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 "
    "333 611 556 778 556 556 500 389 280 389 584"
)


def name_fonts(svg: str) -> str:
    """Name the fonts that are as wide as Helvetica, where Graphviz names this one alone."""
    return svg.replace(_WRITTEN, f'font-family="{FONTS}"')


def hold_widths(svg: str) -> str:
    """Give each line of text the width that it has in Helvetica; one with other characters stays as it is."""
    return _TEXT.sub(_held, svg)


def _held(text: re.Match[str]) -> str:
    attributes, content = text[1], text[2]
    parts = _PART.findall(content) or [(attributes, content)]
    widths = list(_part_widths(parts))
    if not content.strip() or None in widths:
        return text[0]
    width = f'textLength="{sum(filter(None, widths)):.2f}" lengthAdjust="spacingAndGlyphs"'
    return f"<text {attributes} {width}>{content}</text>"


def _part_widths(parts: list[tuple[str, str]]) -> Iterator[float | None]:
    for attributes, content in parts:
        size = _SIZE.search(attributes)
        yield (
            None
            if size is None
            else helvetica_width(html.unescape(content), float(size[1]), is_bold="bold" in attributes)
        )


def helvetica_width(text: str, size: float, *, is_bold: bool = False) -> float | None:
    """Return the width of a text in Helvetica; None if it has a character whose width is not known."""
    widths = _BOLD if is_bold else _REGULAR
    if not all(char in widths for char in text):
        return None
    return sum(widths[char] for char in text) * size / 1000
