"""Draw a graph as .svg, .png, .pdf or .dot; if the requested picture is too large, draw a coarser one.

What comes in: a `Graph`. What goes out: the bytes of the file, and notes for the user.
"""

import math
import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.formats import FileContent
from gradinspect.renderers.picture.dot.document import crossings_of, frame_titles, write_dot
from gradinspect.renderers.picture.dot.scene import set_scene
from gradinspect.renderers.picture.edge_labels import with_labels
from gradinspect.renderers.picture.fitting import fit_drawing
from gradinspect.renderers.picture.graphviz import Engine, LayoutError, draw_placed, find_engine, lay_out
from gradinspect.renderers.picture.paper import fit_sheet
from gradinspect.renderers.picture.placed import size_in_points, with_titles_above
from gradinspect.renderers.picture.plan.drawing import Drawing, closed_blocks, count_boxes, plan_drawing
from gradinspect.renderers.picture.plan.fans import has_wide_fan
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.routing import ColumnArrow, with_crossings
from gradinspect.renderers.picture.rows.svg import render_large_svg
from gradinspect.renderers.picture.svg.descriptions import describe_parts
from gradinspect.renderers.picture.svg.helvetica import hold_widths, name_fonts
from gradinspect.renderers.picture.svg.lines import join_lines
from gradinspect.renderers.picture.svg.titles import raise_titles
from gradinspect.renderers.picture.svg.to_pdf import require_typst, svg_to_pdf

PictureFormat: TypeAlias = Literal["dot", "svg", "png", "pdf"]
FIRST_TRY_SHARE, SECOND_TRY_SHARE = 0.6, 0.3  # of the time limit
LAST_TRY_S = 10.0  # granted even after the time limit: such a small picture is quick
FULL_FACTOR = 4  # times the boxes with --full, which may take longer
TOO_MANY_FOR_GRAPHVIZ = 4000  # boxes: dot takes a minute or never ends, so we draw a full SVG ourselves
FEWER = 5  # a coarser attempt gets a fifth of the boxes
FEWEST_BOXES = 20
PNG_DPI = 192  # twice the resolution of a screen, for sharp text
MAX_PIXELS = 40_000_000
MAX_PIXELS_A_SIDE = 16_000  # more than most viewers show
MIN_DPI = 50  # the text is 7 pixels high
PADDING = 22.0  # points that Graphviz leaves around a picture, both sides together


def draw(
    graph: Graph,
    picture_format: PictureFormat,
    options: DrawOptions | None = None,
    *,
    time_limit_s: float = 60,
    engine: Engine | None = None,
) -> FileContent:
    """Draw a graph.

    A picture that is too large or takes too long is drawn again with fewer boxes, and a note says so.

    Args:
        graph: The graph.
        picture_format: The kind of file.
        options: What to draw.
        time_limit_s: Limit for all layout attempts together; a last attempt may take some seconds more.
        engine: The Graphviz program; by default the one on this machine.

    Raises:
        GradInspectError: No program can write this format, or it fails even on the smallest picture.
    """
    options = options or DrawOptions()
    is_all = options.full and picture_format == "svg"
    if is_all and (count_boxes(graph, options) > TOO_MANY_FOR_GRAPHVIZ or has_wide_fan(graph)):
        return _draw_in_rows(graph, options)
    if options.full and options.max_boxes is not None:
        limit = None if picture_format == "dot" else options.max_boxes * FULL_FACTOR
        options = msgspec.structs.replace(options, max_boxes=limit)
    if picture_format == "dot":
        options = msgspec.structs.replace(options, fit_to="none")  # another Graphviz lays it out
        drawing = plan_drawing(graph, options)
        return FileContent(write_dot(graph, drawing, options).encode(), (*drawing.notes, *_unasked(drawing, options)))
    engine = engine or find_engine()
    if picture_format == "pdf" and not engine.writes_pdf:
        require_typst()
    return _draw_in_time(graph, picture_format, options, engine, time_limit_s)


def _unasked(drawing: Drawing, options: DrawOptions) -> tuple[str, ...]:
    """Say what is closed, unless the user chose how deep to look."""
    closed = closed_blocks(drawing.boxes, options) if options.depth is None and not options.full else ""
    return (closed,) if closed else ()


def _draw_in_rows(graph: Graph, options: DrawOptions) -> FileContent:
    """Draw a full graph that is too large for Graphviz."""
    drawing = plan_drawing(graph, msgspec.structs.replace(options, max_boxes=None))
    scene = set_scene(graph, options, [box.ids for box in drawing.boxes])
    notes = ["too large for Graphviz: drawn in rows"]
    notes += ["too large for paper: drawn at full size"] if options.theme == "paper" else []
    return FileContent(render_large_svg(scene, drawing).encode(), tuple(notes))


def _draw_in_time(
    graph: Graph, picture_format: PictureFormat, options: DrawOptions, engine: Engine, time_limit_s: float
) -> FileContent:
    reason = ""
    for try_s in (time_limit_s * FIRST_TRY_SHARE, time_limit_s * SECOND_TRY_SHARE, LAST_TRY_S):
        fitted = fit_drawing(graph, options, engine, try_s) if options.is_compact and not reason else None
        drawing = plan_drawing(graph, options) if fitted is None else fitted.drawing
        text = (
            _text(graph, drawing, options, None)
            if fitted is None
            else _text(graph, drawing, fitted.options, fitted.caption_width)
        )
        try:
            content, notes = _lay_out_as(picture_format, text, engine, try_s)
        except LayoutError as error:
            if options.full and picture_format == "svg":
                return _draw_in_rows(graph, options)
            reason = str(error)
            fewer = max(len(drawing.boxes) // FEWER, FEWEST_BOXES)
            options = msgspec.structs.replace(options, max_boxes=fewer)
        else:
            again = (f"drawn with fewer boxes: {reason}",) if reason else ()
            return FileContent(content, (*again, *drawing.notes, *_unasked(drawing, options), *notes))
    raise GradInspectError(
        f"The picture could not be drawn: {reason}.", "Write a .dot file, or choose a smaller depth."
    )


def _text(graph: Graph, drawing: Drawing, options: DrawOptions, width: float | None) -> "_Text":
    return _Text(
        write_dot(graph, drawing, options, caption_width=width), frame_titles(graph, drawing, options),
        crossings_of(graph, drawing, options), options.direction, options.theme == "paper", options.is_compact,
    )  # fmt: skip


class _Text(NamedTuple):
    """A drawing as text for Graphviz."""

    dot: str
    titles: Mapping[str, str]  # of frames, as nodes by the name of the cluster
    crossings: Sequence[ColumnArrow]  # arrows from one column to another
    direction: str
    is_for_paper: bool
    is_compact: bool  # labels of arrows have no place yet


def _lay_out_as(picture_format: str, text: _Text, engine: Engine, try_s: float) -> tuple[bytes, tuple[str, ...]]:
    if picture_format == "png" or (picture_format == "pdf" and engine.writes_pdf):
        return _placed(picture_format, text, engine, try_s)
    content, notes = (
        _placed("svg", text, engine, try_s) if text.is_for_paper or text.is_compact else (_svg(text, engine, try_s), ())
    )
    svg = content.decode()
    if picture_format == "pdf":
        return svg_to_pdf(raise_titles(svg).encode()), notes
    drawn = name_fonts(raise_titles(join_lines(describe_parts(svg))))
    return (hold_widths(drawn) if engine.measures_helvetica else drawn).encode(), notes


def _svg(text: _Text, engine: Engine, try_s: float) -> bytes:
    return lay_out(text.dot, "svg", engine, time_limit_s=try_s)


def _placed(picture_format: str, text: _Text, engine: Engine, try_s: float) -> tuple[bytes, tuple[str, ...]]:
    """Lay out first, then draw: the size of a bitmap and of paper is limited, and titles have to move."""
    end = monotonic() + try_s
    placed = with_crossings(
        lay_out(text.dot, "dot", engine, time_limit_s=try_s).decode(), text.crossings, text.direction
    )
    placed = with_labels(placed) if text.is_compact else placed
    notes: list[str] = []
    values: dict[str, str] = {}
    sheet = fit_sheet(placed) if text.is_for_paper else None
    if sheet is not None:
        values |= {"viewport": sheet.viewport, "margin": "0"}
        notes += filter(None, [sheet.note])
    if picture_format == "png":
        dpi = _dpi(size_in_points(placed) if sheet is None else (sheet.width, sheet.height))
        values["dpi"] = str(dpi)
        limit = f"drawn at {dpi:.0f} dpi instead of {PNG_DPI} to stay under {MAX_PIXELS // 10**6} megapixels"
        notes += [limit] if dpi < PNG_DPI else []
    raised = placed if picture_format == "svg" else with_titles_above(placed, text.titles)
    content = draw_placed(raised, picture_format, engine, time_limit_s=end - monotonic(), **values)
    return re.sub(rb"/CreationDate \(D:\d{14}", b"/CreationDate (D:19700101000000", content), tuple(notes)


def _dpi(size: tuple[float, float]) -> int:
    """Choose the resolution of a bitmap.

    Raises:
        GradInspectError: Within the limits the text would be too small to read.
    """
    width, height = (side + PADDING for side in size)
    most = min(math.sqrt(MAX_PIXELS / (width * height)), (MAX_PIXELS_A_SIDE - 1) / max(width, height))
    dpi = min(PNG_DPI, math.floor(72 * most))
    if dpi < MIN_DPI:
        raise GradInspectError(
            f"A .png of {width:,.0f} x {height:,.0f} points would be too large to read.",
            "Write .svg or .html, which have no limit, or show less: a smaller depth, or a part of the graph.",
        )
    return dpi


def svg_file(graph: Graph, options: DrawOptions) -> FileContent:
    """Make an .svg file."""
    return draw(graph, "svg", options)


def png_file(graph: Graph, options: DrawOptions) -> FileContent:
    """Make a .png file."""
    return draw(graph, "png", options)


def pdf_file(graph: Graph, options: DrawOptions) -> FileContent:
    """Make a .pdf file."""
    return draw(graph, "pdf", options)


def dot_file(graph: Graph, options: DrawOptions) -> FileContent:
    """Make a .dot file."""
    return draw(graph, "dot", options)
