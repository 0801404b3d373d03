"""Count how often arrows cross in pictures that fit a screen, beside Graphviz's own layout of the same boxes.

    python benchmarks/crossings.py run.json.gz ...

Graphviz draws all boxes below each other, however high; ours are set in columns, and arrows between columns are ours.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import gradinspect as gi
from gradinspect.graph import Graph
from gradinspect.renderers.picture.crossings import count_crossings
from gradinspect.renderers.picture.dot.document import crossings_of, write_dot
from gradinspect.renderers.picture.fitting import fit_drawing
from gradinspect.renderers.picture.graphviz import Engine, find_engine, lay_out
from gradinspect.renderers.picture.layouts import Fitted
from gradinspect.renderers.picture.placed import size_in_points
from gradinspect.renderers.picture.plan.drawing import Drawing, in_columns
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.routing import with_crossings

TIME_LIMIT_S = 60


def main(files: Sequence[str]) -> None:
    """Print a row for each capture file."""
    engine = find_engine(path="")
    print(f"{'':20} {'crossings':>10} {'Graphviz':>10} {'height in points':>18} {'Graphviz':>10}")
    for file in files:
        graph = gi.load(file)
        fitted = fit_drawing(graph, DrawOptions(fit_to="screen"), engine, TIME_LIMIT_S)
        ours = placed(graph, fitted, fitted.drawing, engine)
        alone = placed(graph, fitted, one_column(fitted.drawing), engine)
        numbers = [count_crossings(text) for text in (ours, alone)]
        heights = [size_in_points(text).height for text in (ours, alone)]
        name = Path(file).name.split(".")[0]
        print(f"{name:20} {numbers[0]:>10} {numbers[1]:>10} {heights[0]:>18.0f} {heights[1]:>10.0f}")


def one_column(drawing: Drawing) -> Drawing:
    """Return a drawing as Graphviz alone draws it: below each other, with all of its arrows."""
    everything = tuple(sorted((*drawing.arrows, *drawing.references)))
    return in_columns(drawing._replace(arrows=everything, references=()), ())


def placed(graph: Graph, fitted: Fitted, drawing: Drawing, engine: Engine) -> str:
    """Lay out a drawing."""
    dot = write_dot(graph, drawing, fitted.options, caption_width=0)
    text = lay_out(dot, "dot", engine, time_limit_s=TIME_LIMIT_S).decode()
    return with_crossings(text, crossings_of(graph, drawing, fitted.options), fitted.options.direction)


if __name__ == "__main__":
    main(sys.argv[1:])
