"""Pictures for a paper: white, without a legend, exactly as wide as a column of text, with text that can be read there.

What comes in: a layout. What goes out: the viewport in Graphviz's terms.
"""

from typing import NamedTuple

from gradinspect.renderers.picture.placed import Extent, size_in_points

POINTS_PER_MM = 72 / 25.4
WIDTH, HEIGHT = 120 * POINTS_PER_MM, 190 * POINTS_PER_MM  # the text of a page of most journals, less a caption
MARGIN = 4.0  # points around the picture
FONT_SIZE = 10.0  # points, of most text at full size
READABLE = 6.0  # points
COLUMN = Extent(WIDTH * FONT_SIZE / READABLE, HEIGHT * FONT_SIZE / READABLE)  # what is readable when it is shrunk


class Sheet(NamedTuple):
    """A picture on paper."""

    width: float  # points
    height: float
    scale: float
    viewport: str  # an attribute of the graph

    @property
    def note(self) -> str:
        """Warn of text that is too small; "" if it is not."""
        size = FONT_SIZE * self.scale
        words = f"text is {size:.1f} points high; a smaller --depth, or --around, makes it larger"
        return words if size < READABLE else ""


def fit_sheet(placed: str) -> Sheet:
    """Fit a layout, which Graphviz wrote with positions, into the width and height of the paper."""
    width, height = (side + 2 * MARGIN for side in size_in_points(placed))
    scale = min(1.0, WIDTH / width, HEIGHT / height)
    shown = height * scale
    center = f"{width / 2 - MARGIN:.2f},{height / 2 - MARGIN:.2f}"
    return Sheet(WIDTH, shown, scale, f"{WIDTH:.2f},{shown:.2f},{scale:.5f},{center}")
