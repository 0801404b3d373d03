"""Count how often arrows cross in pictures that fit a screen, beside Graphviz's own layout of the same boxes.

    python benchmarks/crossings.py run.json.gz ...

Graphviz draws all boxes below each other, however high; ours are set in columns, and arrows between columns are ours.
"""

import math
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import gradinspect as gi
from gradinspect.graph import Graph
from gradinspect.renderers.picture.dot.document import crossings_of, write_dot
from gradinspect.renderers.picture.edge_labels import paths_of
from gradinspect.renderers.picture.fitting import Fitted, fit_drawing
from gradinspect.renderers.picture.graphviz import Engine, find_engine, lay_out
from gradinspect.renderers.picture.placed import Point, size_in_points
from gradinspect.renderers.picture.plan.drawing import Drawing, in_columns
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.routing import with_crossings

TIME_LIMIT_S = 60
NEAR = 3.0  # points: crossings that are no farther apart are one
LEAST_SINE = 0.2  # of the angle; less is running along each other


def main(files: Sequence[str]) -> None:
    """Print a row for each capture file."""
    engine = find_engine(path="")
    print(f"{'':20} {'crossings':>10} {'Graphviz':>10} {'height in points':>18} {'Graphviz':>10}")
    for file in files:
        graph = gi.load(file)
        fitted = fit_drawing(graph, DrawOptions(fit_to="screen"), engine, TIME_LIMIT_S)
        ours = placed(graph, fitted, fitted.drawing, engine)
        alone = placed(graph, fitted, in_columns(fitted.drawing, ()), engine)
        numbers = [count_crossings(paths_of(text)) for text in (ours, alone)]
        heights = [size_in_points(text).height for text in (ours, alone)]
        name = Path(file).name.split(".")[0]
        print(f"{name:20} {numbers[0]:>10} {numbers[1]:>10} {heights[0]:>18.0f} {heights[1]:>10.0f}")


def placed(graph: Graph, fitted: Fitted, drawing: Drawing, engine: Engine) -> str:
    """Lay out a drawing."""
    dot = write_dot(graph, drawing, fitted.options, caption_width=0)
    text = lay_out(dot, "dot", engine, time_limit_s=TIME_LIMIT_S).decode()
    return with_crossings(text, crossings_of(graph, drawing, fitted.options))


def count_crossings(paths: Sequence[Sequence[Point]]) -> int:
    """Count the places where paths cross, as one sees them: several that run along each other cross another once."""
    places = {
        (round(place[0] / NEAR), round(place[1] / NEAR))
        for first, second in combinations(paths, 2)
        for one in pairwise(first)
        for other in pairwise(second)
        if (place := _crossing(one, other)) is not None
    }
    return len(places)


def _crossing(one: tuple[Point, Point], other: tuple[Point, Point]) -> Point | None:
    sides = [_side(*one, point) for point in other]
    if sides[0] * sides[1] >= 0 or _side(*other, one[0]) * _side(*other, one[1]) >= 0:
        return None
    (dx, dy), (other_dx, other_dy) = _step(one), _step(other)
    if abs(dx * other_dy - dy * other_dx) < LEAST_SINE * math.hypot(dx, dy) * math.hypot(other_dx, other_dy):
        return None
    share = sides[0] / (sides[0] - sides[1])
    return other[0][0] + share * other_dx, other[0][1] + share * other_dy


def _step(pair: tuple[Point, Point]) -> Point:
    return pair[1][0] - pair[0][0], pair[1][1] - pair[0][1]


def _side(start: Point, end: Point, point: Point) -> float:
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])


if __name__ == "__main__":
    main(sys.argv[1:])
