"""Read and change a layout: a graph with the position of everything, as Graphviz writes it.

What comes in: such a graph. What goes out: where its boxes and frames are; and for bitmaps and PDF the same graph with
the title of each frame once more, as a node. Graphviz draws frames first, so that an arrow into one strikes through its
title; nodes are drawn after the arrows, and on an opaque strip that covers the first title. No second layout is needed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from gradinspect.renderers.picture.graphviz import LayoutError

SIZE = re.compile(r'\bbb="[^",]*,[^",]*,([\d.e+]+),([\d.e+]+)"')
CLUSTER = re.compile(r"^\s*subgraph (cluster_\d+) \{", re.MULTILINE)
FRAME = re.compile(r'^\s*subgraph (cluster_\w+) \{\s*graph \[bb="([^"]+)"', re.MULTILINE)
NODE = re.compile(r"^\t+(\w+)\t\[(.*?)\];$", re.MULTILINE | re.DOTALL)  # lines of a long text end with a backslash
NUMBER = re.compile(r'(?:^|^\t+)(height|width|pos)="?([-\d.e+]+(?:,[-\d.e+]+)?)"?', re.MULTILINE)
LEAST_SIDE = 0.2  # inches; Graphviz does not write what is the default
POINTS_PER_INCH = 72
PLACED = re.compile(r'\b((?:bb|pos|lp|xlp)=)"([-\d.e+,\s\\s]+)"')  # a quote in a text of the program is escaped
PORT = re.compile(r"^\t+\w+:\w{2,} -> |^\t+\w+(?::\w)? -> \w+:\w{2,}", re.MULTILINE)  # a part of a box, not a side
XY = re.compile(r"([-\d.]+(?:e[-+]\d+)?),([-\d.]+(?:e[-+]\d+)?)")
FRAME_TITLE = re.compile(
    r'(^\s*subgraph cluster_\w+ \{\s*graph \[bb="([^"]+)"(?:(?!\];\n).)*?\blp=")([-\d.e+]+),', re.MULTILINE | re.DOTALL
)
TITLE_AT = re.compile(r'\blp="([-\d.e+]+,[-\d.e+]+)"')  # a quote in a text of the program is escaped

Point: TypeAlias = tuple[float, float]


class Extent(NamedTuple):
    """The size of a picture, in points."""

    width: float
    height: float


class Rect(NamedTuple):
    """A box in a picture, in points; y grows upward."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        """Return the width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Return the height."""
        return self.top - self.bottom

    @property
    def middle(self) -> Point:
        """Return the center."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def overlaps(self, other: "Rect") -> bool:
        """Return whether both have a part in common."""
        is_beside = self.right <= other.left or other.right <= self.left
        return not is_beside and self.bottom < other.top and other.bottom < self.top

    def holds(self, point: Point) -> bool:
        """Return whether a point is inside."""
        return self.left < point[0] < self.right and self.bottom < point[1] < self.top


def downward(point: Point, direction: str) -> Point:
    """Return where a point is if gradients flow down and columns follow from left to right, as in direction TB."""
    x, y = point
    return {"TB": (x, y), "BT": (x, -y), "LR": (-y, -x), "RL": (-y, x)}[direction]


def back_from_downward(point: Point, direction: str) -> Point:
    """Undo `downward`."""
    x, y = point
    return {"TB": (x, y), "BT": (x, -y), "LR": (-y, -x), "RL": (y, -x)}[direction]


def downward_rect(rect: Rect, direction: str) -> Rect:
    """Return where a box is if gradients flow down."""
    corners = [downward(corner, direction) for corner in ((rect.left, rect.bottom), (rect.right, rect.top))]
    return Rect(*map(min, *corners), *map(max, *corners))


def around(rects: Sequence[Rect]) -> Rect:
    """Return the smallest box around others."""
    return Rect(
        min(rect.left for rect in rects), min(rect.bottom for rect in rects),
        max(rect.right for rect in rects), max(rect.top for rect in rects),
    )  # fmt: skip


def rects_of(placed: str) -> dict[str, Rect]:
    """Return where each node and each cluster is, by its name."""
    found = {match[1]: Rect(*map(float, match[2].split(","))) for match in FRAME.finditer(placed)}
    for match in NODE.finditer(placed):
        numbers = dict(NUMBER.findall(match[2]))
        if "pos" in numbers:
            x, y = map(float, numbers["pos"].split(","))
            width, height = (float(numbers.get(side, LEAST_SIDE)) * POINTS_PER_INCH / 2 for side in ("width", "height"))
            found[match[1]] = Rect(x - width, y - height, x + width, y + height)
    return found


def size_in_points(placed: str) -> Extent:
    """Return the width and the height of the picture.

    Raises:
        LayoutError: Graphviz did not say.
    """
    match = SIZE.search(placed)
    if match is None:
        raise LayoutError("the size of the picture is unknown")
    return Extent(max(float(match[1]), 1.0), max(float(match[2]), 1.0))


def mirrored(placed: str) -> str:
    """Return a layout with left and right exchanged; one whose arrows leave a part of a box stays as it is."""
    size = SIZE.search(placed)
    if size is None or PORT.search(placed):
        return placed
    flipped = PLACED.sub(lambda match: f'{match[1]}"{_mirrored(match[1], match[2], float(size[1]))}"', placed)
    return FRAME_TITLE.sub(_at_left_again, flipped)


def _at_left_again(title: re.Match[str]) -> str:
    """Put the title of a frame where it was, beside the left side."""
    left, _, right, _ = map(float, title[2].split(","))
    return f"{title[1]}{left + right - float(title[3]):.5g},"


def _mirrored(name: str, points: str, width: float) -> str:
    if name == "bb=":
        left, bottom, right, top = points.split(",")
        return f"{width - float(right):g},{bottom},{width - float(left):g},{top}"
    return XY.sub(lambda match: f"{width - float(match[1]):.5g},{match[2]}", points)


def with_titles_above(placed: str, titles: Mapping[str, str]) -> str:
    """Cover the titles of frames with nodes.

    Args:
        placed: The graph.
        titles: The attributes of the node for each frame, by the name of its cluster.
    """
    starts = list(CLUSTER.finditer(placed))
    places = {start[1]: TITLE_AT.search(placed, start.end()) for start in starts}
    lines = ["graph [outputorder=edgesfirst]"]
    for name, place in places.items():
        if place is not None and name in titles:
            lines.append(f'title_{name} {titles[name][:-1]} pos="{place[1]}"]')
    body = placed.rstrip().removesuffix("}")
    return "\n".join((body, *lines, "}\n"))
