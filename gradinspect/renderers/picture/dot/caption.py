"""The caption of a picture: what it shows, what it leaves out, what its marks mean.

What comes in: a `Graph`, and the `Drawing` of it. What goes out: an HTML-like label.
"""

from collections.abc import Iterable, Iterator
from html import unescape

from gradinspect.analyses.structure.cut import describe_cut, lost_places, uses_in_whole
from gradinspect.analyses.summary import describe_capture, describe_edges, summarize
from gradinspect.graph import Graph
from gradinspect.renderers.picture.colors.looks import Coloring, Swatch
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.dot.boxes import is_custom
from gradinspect.renderers.picture.dot.scene import Scene
from gradinspect.renderers.picture.dot.scopes import ScopeLabels, share_bar
from gradinspect.renderers.picture.dot.text import html, small
from gradinspect.renderers.picture.plan.drawing import Drawing, closed_blocks
from gradinspect.renderers.picture.plan.parts import DrawOptions, ScopeStart, is_detailed
from gradinspect.renderers.picture.text_width import text_width
from gradinspect.units import format_count, format_held

ENTRIES_IN_A_ROW = 2
ENTRY_WIDTH = 215  # points
MAX_LINE = 90
FONT_SIZE = 9.0
LETTER = 0.6  # its width, of the size: `text_width`
LETTERS_OF_SOURCE = 24
LINE_HEIGHT, ROW_HEIGHT, AROUND = 15.5, 20.0, 24.0  # points
LEAST_WIDTH = ENTRIES_IN_A_ROW * ENTRY_WIDTH
GAP = 20  # points before the next mark: a viewer's font may be wider than the one that words are laid out in
SWATCH_WIDTH, SWATCH_HEIGHT = 34, 15  # points


def caption(scene: Scene, drawing: Drawing, width: float | None = None) -> str:
    """Write the caption and the legend.

    Args:
        scene: The graph and its colors.
        drawing: What is drawn.
        width: In points, what lines may fill, with several facts in each; None for one per line.
    """
    coloring, palette = scene.coloring, scene.palette
    lines = [*_lines(scene, drawing, width), *([] if coloring is None else [_scale(coloring, palette)])]
    marks = (f"<TR>{''.join(row)}</TR>" for row in _rows(scene, drawing, width))
    rows = (f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in filter(None, (*lines, _table(marks))))
    return f"<{small(_table(rows), palette.ink, 9)}>"


def height_of_caption(scene: Scene, drawing: Drawing, width: float) -> float:
    """Estimate the height in points."""
    num_lines = len(_lines(scene, drawing, width)) + (scene.coloring is not None)
    return num_lines * LINE_HEIGHT + len(_rows(scene, drawing, width)) * ROW_HEIGHT + AROUND


def _lines(scene: Scene, drawing: Drawing, width: float | None) -> list[str]:
    graph, options = scene.graph, scene.options
    source = f"<B>{html(graph.source)}</B>  " if graph.captured_at.kind in {"backward", "grad"} else ""
    left_out = (html(line, MAX_LINE) for line in (*_left_out(graph, drawing, options), *drawing.notes))
    facts = [*_counts(graph, options), *left_out]
    lines = [source + html(describe_capture(graph), _length_of_line(width)), *facts[:1]]
    for fact in facts[1:]:
        joined = f"{lines[-1]} · {fact}"
        if width is not None and text_width(unescape(joined), FONT_SIZE) <= max(width, LEAST_WIDTH):
            lines[-1] = joined
        else:
            lines.append(fact)
    return lines


def _length_of_line(width: float | None) -> int:
    """Return how many letters of code fit beside the name of the program, which is short."""
    return MAX_LINE if width is None else max(int(width / (LETTER * FONT_SIZE)) - LETTERS_OF_SOURCE, MAX_LINE)


def _rows(scene: Scene, drawing: Drawing, width: float | None) -> list[list[str]]:
    """Return the entries of the legend in rows."""
    entries = [*_legend(scene, drawing), *([] if scene.coloring is None else _marks(scene.coloring))]
    in_a_row = ENTRIES_IN_A_ROW if width is None else max(int(width / ENTRY_WIDTH), ENTRIES_IN_A_ROW)
    return [entries[start : start + in_a_row] for start in range(0, len(entries), in_a_row)]


def _table(rows: Iterable[str]) -> str:
    """Make one table of rows; the legend is one of its own, so that a long line above does not stretch it."""
    written = "".join(rows)
    return written and f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1">{written}</TABLE>'


def _counts(graph: Graph, options: DrawOptions) -> Iterator[str]:
    if options.cut is not None:
        yield f"<B>{html(describe_cut(options.cut), MAX_LINE)}</B>"
        return
    figures = summarize(graph)
    leaves = format_count(figures.leaves, "leaf", "leaves")
    yield f"{format_count(figures.nodes, 'node')}, {describe_edges(figures)}, {leaves}"
    if figures.held_bytes:
        yield format_held(figures.held_bytes, figures.weight_bytes)


def _left_out(graph: Graph, drawing: Drawing, options: DrawOptions) -> Iterator[str]:
    repeats = sum(isinstance(part, ScopeStart) and bool(part.scope.copies) for part in drawing.parts)
    if repeats:
        yield f"{format_count(repeats, 'repeat')} drawn once; the other copies share one box"
    chains = sum(box.kind == "shapes" for box in drawing.boxes)
    if chains:
        yield f"{format_count(chains, 'chain')} of views and transposes folded into one box each"
    closed = closed_blocks(drawing.boxes, options)
    if closed:
        yield closed
    if options.counts_leaves:
        yield "leaves are counted, not drawn"
    if not options.none_edges and _has_none_edges(graph, options):
        yield "None edges are not drawn"


def _has_none_edges(graph: Graph, options: DrawOptions) -> bool:
    return any(
        node.next_edges.count(None) > len(lost_places(options.cut, node_id)) for node_id, node in enumerate(graph.nodes)
    )


def _legend(scene: Scene, drawing: Drawing) -> list[str]:
    """Explain the marks that occur in the picture."""
    graph, options, colors, coloring = scene
    drawn = [graph.nodes[box.ids.stop - 1] for box in drawing.boxes if is_detailed(box)]
    used = {edge.next_node for node in drawn for edge in node.next_edges if edge} | {root.node for root in graph.roots}
    uses = uses_in_whole(graph, options.cut)
    leaf_counts = [uses[node_id] for node_id in used if graph.nodes[node_id].kind == "accumulate_grad"]
    leaf_counts = [] if options.counts_leaves else leaf_counts
    kinds = {box.kind for box in drawing.boxes}
    labels = ScopeLabels(graph, colors)
    has_tensor = any(value.kind == "tensor" for node in drawn for value in node.saved)
    fill = str if coloring is None else lambda _: ""
    copies = "copies of the block above" + ("" if coloring is None else ", one cell each")
    entries = (
        (True, _entry("→", "direction gradients flow: root to leaf")),
        (graph.roots, _entry(_inked("root", colors.root_ink), "start of backward", fill=colors.root)),
        (
            leaf_counts,
            _entry("<B>+=</B>", "AccumulateGrad: adds into .grad")
            if options.is_compact
            else _entry(_inked("+=", colors.accumulate_ink), "AccumulateGrad: adds into .grad", fill=colors.accumulate),
        ),
        (
            min(leaf_counts, default=2) <= 1,
            _entry("leaf", "parameter or input", fill(colors.leaf), colors.leaf_line),
        ),
        (
            max(leaf_counts, default=0) > 1,
            _entry("leaf", "leaf used more than once", fill(colors.shared), colors.shared_line),
        ),
        (any(map(is_custom, drawn)), _entry("fn", "custom Function", fill(colors.custom), colors.custom_line)),
        (
            "closed" in kinds,
            _entry("box", "collapsed module call or repeated block", fill(colors.closed), colors.closed_line),
        ),
        ("copies" in kinds, _entry("more", copies, fill(colors.copies), colors.copies_line)),
        (
            coloring is None and any(labels.bar(box.ids) for box in drawing.boxes if box.kind in {"node", "closed"}),
            _entry(share_bar(0.4, colors, 30), "share of all bytes held"),
        ),
        (options.saved and has_tensor, _entry("note", "saved tensor", colors.card, colors.card_line)),
        (options.none_edges and _has_none_edges(graph, options), _entry("<B>.</B>", "None: no gradient")),
        (
            any(arrow.is_skip for arrow in drawing.arrows),
            _entry(_inked("skip", colors.skip), "residual connection around a box"),
        ),
        (
            drawing.references,
            _entry("&#8594;", "leads to the box of this name")
            if options.is_compact
            else _entry("&#8594; #n", "leads to #n, which has many users"),
        ),
        (options.cut is not None, _entry(small("cut", colors.cut), "edge to hidden nodes")),
    )
    return [entry for is_drawn, entry in entries if is_drawn]


def _scale(coloring: Coloring, palette: Palette) -> str:
    """Write the color scale as one row."""
    widths = [text_width(words, FONT_SIZE) + GAP for words in (coloring.title, *(one.text for one in coloring.scale))]
    cells = "".join(_filled(swatch, palette.card_line) for swatch in coloring.scale)
    words = f'<TD ALIGN="LEFT">{html(coloring.title)}</TD><TD WIDTH="{GAP}"></TD>'
    return _table([f"<TR>{_unstretched(words + cells, GAP + round(sum(widths)))}</TR>"])


def _marks(coloring: Coloring) -> list[str]:
    return [_row(_filled(swatch), html(swatch.words)) for swatch in coloring.marks]


def _filled(swatch: Swatch, line: str = "") -> str:
    look = swatch.look
    line = look.line or line
    border = f' BORDER="1" COLOR="{line}"' if line else ""
    dashed = ' STYLE="dashed"' if look.style else ""
    return f'<TD BGCOLOR="{look.fill}"{border}{dashed}><FONT COLOR="{look.ink}">{html(swatch.text)}</FONT></TD>'


def _inked(mark: str, ink: str) -> str:
    return f'<FONT COLOR="{ink}">{mark}</FONT>'


def _entry(mark: str, words: str, fill: str = "", line: str = "") -> str:
    background = f' BGCOLOR="{fill}"' if fill else ""
    border = f' BORDER="1" COLOR="{line}"' if line else ""
    return _row(f"<TD{background}{border}>{mark}</TD>", words)


def _row(cell: str, words: str) -> str:
    return f'{_unstretched(cell)}<TD ALIGN="LEFT">{words}</TD><TD WIDTH="{GAP}"></TD>'


def _unstretched(cells: str, width: int = SWATCH_WIDTH) -> str:
    """Put cells into a table of a fixed size: cells of one table are all as wide as the widest in their column."""
    size = f'FIXEDSIZE="TRUE" ALIGN="LEFT" WIDTH="{width}" HEIGHT="{SWATCH_HEIGHT}"'
    return f'<TD><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1" {size}><TR>{cells}</TR></TABLE></TD>'
