"""Color boxes by what became of their nodes between two graphs.

What comes in: for each node whether it was added, removed or changed. What goes out: a `Coloring`. Removed nodes have a
dashed border, and each has its sign in the label, so that they survive print in black and white.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from gradinspect.renderers.picture.colors.looks import Coloring, Look, Swatch
from gradinspect.renderers.picture.colors.palettes import Palette

SIGNS: Final[Mapping[str, str]] = {"added": "+", "removed": "-", "changed": "~"}
_FILLS: Final[Mapping[str, int]] = {"added": 2, "removed": 5, "changed": 1}  # of the palette's kinds


def color_by_status(statuses: Sequence[str], palette: Palette) -> Coloring:
    """Color by what became of the nodes; a box of several nodes counts them."""
    lines = {"added": palette.leaf_line, "removed": palette.cut, "changed": palette.custom_line}
    same = Look(palette.card, "the same in both")

    def made(status: str, words: str, fact: str) -> Look:
        style = "dashed" if status == "removed" else ""
        return Look(palette.kinds[_FILLS[status]], words, fact, lines[status], style, SIGNS[status])

    def look(ids: Sequence[int]) -> Look:
        counts = Counter(statuses[node] for node in ids if statuses[node])
        if not counts:
            return same
        status = next(iter(counts)) if len(counts) == 1 else "changed"
        if len(ids) == 1:
            return made(status, status, f"{SIGNS[status]} {status}")
        words = ", ".join(f"{counts[one]:,} {one}" for one in SIGNS if counts[one])
        return made(status, words, " ".join(f"{SIGNS[one]}{counts[one]:,}" for one in SIGNS if counts[one]))

    scale = (Swatch(made(one, one, ""), f"{sign} {one}") for one, sign in SIGNS.items() if one in statuses)
    return Coloring(
        look=look, leaf=lambda node: look([node]), title="color: change from A to B", scale=tuple(scale), marks=()
    )
