"""The full SVG of a graph that is too large for Graphviz: NOTE [Strips] in `rows.layout`.

What comes in: a `Scene` and a planned `Drawing` in which nothing is collapsed. What goes out: SVG text.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from gradinspect.analyses.summary import describe_capture, describe_edges, summarize
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.dot.scene import Scene
from gradinspect.renderers.picture.plan.drawing import Drawing
from gradinspect.renderers.picture.rows.boxes import LargeBoxes, plain
from gradinspect.renderers.picture.rows.layout import LANE, Point, Room, RowArrow
from gradinspect.renderers.picture.rows.nesting import Nested, lay_out_nested
from gradinspect.renderers.picture.svg.helvetica import FONTS
from gradinspect.units import format_count

MARGIN, CAPTION_LINE = 20.0, 16.0
MAX_REFERENCES = 3
NOTE = "too large for Graphviz: drawn in rows; → #n leads there, ← #n comes from there"


def render_large_svg(scene: Scene, drawing: Drawing) -> str:
    """Write the picture."""
    looks = LargeBoxes(scene)
    words = [looks.words(box) for box in drawing.boxes]
    sizes = [looks.size(box_words) for box_words in words]
    arrows = [RowArrow(arrow.tail, arrow.head) for arrow in (*drawing.arrows, *drawing.references)]
    rows = lay_out_nested(drawing.parts, sizes, arrows, looks.title_width)
    caption = [] if scene.options.theme == "paper" else _caption(scene, drawing)
    top = MARGIN + CAPTION_LINE * len(caption)
    width, height = rows.width + 2 * MARGIN, rows.height + top + MARGIN
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}pt" height="{height:.0f}pt" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n<title>{plain(f"Autograd graph of {scene.graph.source}")}</title>\n'
        f"<style>{_style(scene.palette)}</style>\n"
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>\n'
    )
    lines = "".join(
        f'<text class="h" x="{MARGIN:.0f}" y="{MARGIN + CAPTION_LINE * place:.0f}">{plain(line)}</text>\n'
        for place, line in enumerate(caption)
    )
    frames, titles = ("".join(map(write, rows.frames)) for write in (looks.frame_element, looks.title_element))
    boxes = "".join(
        looks.element(box, box_words, *place)
        for box, box_words, place in zip(drawing.boxes, words, rows.places, strict=True)
    )
    edges = "".join(f'<path d="{_path(line)}"/>' for line in rows.lines if line is not None)
    references = "".join(_references(scene, drawing, arrows, rows, sizes))
    shift = f"translate({MARGIN:.0f} {top:.0f})"
    drawn = f'{frames}<g class="e">{edges}</g>\n{titles}{boxes}{references}'
    return f'{head}{lines}<g transform="{shift}">\n{drawn}</g>\n</svg>\n'


def _caption(scene: Scene, drawing: Drawing) -> list[str]:
    graph = scene.graph
    figures = summarize(graph)
    leaves = format_count(figures.leaves, "leaf", "leaves")
    counts = f"{format_count(figures.nodes, 'node')}, {describe_edges(figures)}, {leaves}"
    return [f"{graph.source}  {describe_capture(graph)}", counts, NOTE, *drawing.notes]


def _style(palette: Palette) -> str:
    return (
        f"text{{font:8px {FONTS};fill:{palette.quiet};text-anchor:middle}}"
        f".t{{font-size:10px;font-weight:bold;fill:{palette.ink}}}.c{{text-anchor:start;fill:{palette.ink}}}"
        f".h{{text-anchor:start;font-size:11px;fill:{palette.ink}}}.r{{fill:{palette.cut}}}"
        f".e path{{fill:none;stroke:{palette.edge};stroke-width:.8;marker-end:none}}.paper{{fill:{palette.paper}}}"
        f"g rect{{fill:{palette.card};stroke:{palette.card_line};stroke-width:.7}}"
        f"g .f{{stroke:{palette.cluster_line}}}"
        f".b{{font-size:10px;font-weight:bold;fill:{palette.ink}}}"
        f".l{{fill:{palette.leaf}!important;stroke:{palette.leaf_line}!important}}"
        f".m{{fill:{palette.shared}!important;stroke:{palette.shared_line}!important}}"
    )


def _path(points: Sequence[Point]) -> str:
    """Write a curve that starts and ends vertically, with a tip."""
    start, *_ = points
    path = f"M{start[0]:.0f} {start[1]:.0f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        path += (
            f"V{to_y:.0f}"
            if abs(to_x - x) < 1
            else f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
        )
    return f"{path}l-2.5 -5m2.5 5l2.5 -5"


def _references(
    scene: Scene, drawing: Drawing, arrows: Sequence[RowArrow], rows: Nested, sizes: Sequence[Room]
) -> Iterator[str]:
    """Write what is not drawn as a line: targets below a box, sources above it, and roots."""
    ways_on: dict[int, list[int]] = {}
    origins: dict[int, list[int]] = {}
    for arrow, line in zip(arrows, rows.lines, strict=True):
        if line is None:
            ways_on.setdefault(arrow.tail, []).append(arrow.head)
            origins.setdefault(arrow.head, []).append(arrow.tail)
    numbers = [scene.number(box.ids.start) for box in drawing.boxes]
    for sign, shift, found in (("→", 9.0, ways_on), ("←", -3.0, origins)):
        for box, others in found.items():
            left, top = rows.places[box]
            y = top + (sizes[box].height if sign == "→" else 0) + shift
            links = " ".join(
                f'<a href="#n{numbers[other]}">#{numbers[other]}</a>'
                for other in dict.fromkeys(others[:MAX_REFERENCES])
            )
            more = f" and {len(others) - MAX_REFERENCES:,} more" if len(others) > MAX_REFERENCES else ""
            x = left + sizes[box].left + LANE
            yield f'<text class="c r" x="{x:.0f}" y="{y:.0f}">{sign} {links}{more}</text>\n'
    for index, root in enumerate(scene.graph.roots):
        box = drawing.box_of[root.node]
        if box >= 0 and scene.graph.nodes[root.node].kind != "accumulate_grad":
            left, top = rows.places[box]
            words = plain(f"root {root.name or index}")
            yield f'<text class="c h" x="{left + sizes[box].left - LANE:.0f}" y="{top - 4:.0f}">↓ {words}</text>\n'
