"""Write what arrows are called where there is room.

What comes in: a layout in which labels of arrows have no place. What goes out: the same, each label beside its arrow,
clear of boxes, borders, titles, arrows and other labels, or only in the tooltip of the arrow. Graphviz would add a rank
for each label, which makes a picture a sixth higher.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gradinspect.renderers.picture.placed import POINTS_PER_INCH, Point, Rect, rects_of, size_in_points
from gradinspect.renderers.picture.text_width import text_width

KEPT = "spoken"  # the attribute of an arrow that Graphviz passes on
FONT_SIZE = 8.0
HEIGHT = 9.0  # points
BESIDE = 3.0  # points between an arrow and its label, whose font may be wider than the one it is measured in
WIDER = 2.0  # points that such a font needs more at either end
SLANT = 8.0  # points that an arrow may move sideways beside its label
HALF_HEAD = 3.5  # points, of the width of the head of an arrow
SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.15, 0.85)  # of the way
BETWEEN = 4.0  # points between two points of an arrow or a border that labels must be clear of
FRAME = re.compile(r"cluster_\d+")  # other clusters are columns, which have no border
EDGE = re.compile(r"^\t+\w+(?::\w+)? -> \w+(?::\w+)?\t\[(.*?)\];$", re.MULTILINE | re.DOTALL)
INVISIBLE = re.compile(r'\bstyle="?invis\b')
LABEL = re.compile(rf'\b{KEPT}="((?:[^"\\]|\\.)*)"')
TIP = re.compile(r'\bpos="[^"]*\be,([-\d.]+),([-\d.]+)')
PATH = re.compile(r'\bpos="([^"]*)"')
TITLE = re.compile(r'lheight=([\d.]+),\s*lp="([-\d.e+]+),([-\d.e+]+)",\s*lwidth=([\d.]+)')


def with_labels(placed: str) -> str:
    """Place the labels of arrows."""
    if f" {KEPT}=" not in placed and f"\t{KEPT}=" not in placed:
        return placed
    edges = _visible(placed)
    paths = [_points(edge[1]) for edge in edges]
    rects = rects_of(placed)
    taken = [*(rect for name, rect in rects.items() if not name.startswith("cluster")), *_titles(placed)]
    lines = [point for path in paths for point in path]
    lines += (point for edge, path in zip(edges, paths, strict=True) for point in _head(edge[1], path))
    lines += (point for name, rect in rects.items() if FRAME.fullmatch(name) for point in _border(rect))
    size = size_in_points(placed)
    written: list[str] = []
    end = 0
    for edge, path in zip(edges, paths, strict=True):
        label = LABEL.search(edge[1])
        if label is None or not path:
            continue
        words = label[1].strip()
        spots = _spots(path, text_width(words, FONT_SIZE))
        spot = next((rect for rect in spots if _is_free(rect, taken, lines, size)), None)
        text = f'tooltip="{words}"'
        if spot is not None:
            taken.append(spot)
            text = f'label="{words}", lp="{spot.middle[0]:.2f},{spot.middle[1]:.2f}"'
        written += [placed[end : edge.start(1) + label.start()], text]
        end = edge.start(1) + label.end()
    return "".join((*written, placed[end:]))


def paths_of(placed: str) -> list[list[Point]]:
    """Return points along each arrow."""
    return [_points(edge[1]) for edge in _visible(placed)]


def _visible(placed: str) -> list[re.Match[str]]:
    return [edge for edge in EDGE.finditer(placed) if not INVISIBLE.search(edge[1])]


def _points(edge: str) -> list[Point]:
    """Return points along an arrow, from its tail to its head."""
    path = PATH.search(edge)
    pairs = [] if path is None else [pair.split(",") for pair in path[1].replace("\\\n", "").split()]
    knots = [(float(pair[0]), float(pair[1])) for pair in pairs if len(pair) == 2]
    found: list[Point] = []
    for start in range(0, len(knots) - 3, 3):
        curve = knots[start : start + 4]
        steps = int(sum(math.dist(*pair) for pair in pairwise(curve)) / BETWEEN) + 1
        found += [_on_curve(curve, step / steps) for step in range(steps)]
    return [*found, *knots[-1:]]


def _head(edge: str, path: Sequence[Point]) -> Iterator[Point]:
    """Return points on the sides of the head of an arrow, which begins where its line ends."""
    tip = TIP.search(edge)
    if tip is None or not path:
        return
    (left, top), (x, y) = path[-1], (float(tip[1]), float(tip[2]))
    for share in (0.0, 0.5):
        middle = left + share * (x - left), top + share * (y - top)
        half = HALF_HEAD * (1 - share)
        yield from ((middle[0] - half, middle[1]), (middle[0] + half, middle[1]))


def _border(frame: Rect) -> Iterator[Point]:
    """Return points along the border of a frame."""
    for step in range(int(max(frame.width, frame.height) / BETWEEN) + 1):
        x, y = frame.left + step * BETWEEN, frame.bottom + step * BETWEEN
        yield from ((x, frame.bottom), (x, frame.top)) if x <= frame.right else ()
        yield from ((frame.left, y), (frame.right, y)) if y <= frame.top else ()


def _on_curve(knots: Sequence[Point], share: float) -> Point:
    rest = 1 - share
    weights = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
    x, y = (sum(weight * knot[axis] for weight, knot in zip(weights, knots, strict=True)) for axis in (0, 1))
    return x, y


def _spots(path: Sequence[Point], width: float) -> Iterator[Rect]:
    for share in SHARES:
        x, y = path[round(share * (len(path) - 1))]
        beside = [other for other, height in path if abs(height - y) <= HEIGHT / 2 and abs(other - x) <= SLANT]
        for left in (max(beside) + BESIDE, min(beside) - BESIDE - width):
            yield Rect(left, y - HEIGHT / 2, left + width, y + HEIGHT / 2)


def _is_free(spot: Rect, taken: Sequence[Rect], lines: Sequence[Point], size: tuple[float, float]) -> bool:
    is_inside = spot.left >= 0 and spot.right <= size[0]
    wider = Rect(spot.left - WIDER, spot.bottom, spot.right + WIDER, spot.top)
    return is_inside and not any(map(spot.overlaps, taken)) and not any(map(wider.holds, lines))


def _titles(placed: str) -> Iterator[Rect]:
    for match in TITLE.finditer(placed):
        height, x, y, width = map(float, match.groups())
        width, height = width * POINTS_PER_INCH / 2, height * POINTS_PER_INCH / 2
        yield Rect(x - width, y - height, x + width, y + height)
