"""The words under a picture: what it shows, what it leaves out, what its marks mean.

What comes in: a `Graph`, and the `Drawing` of it. What goes out: an HTML-like label.
"""

from collections.abc import Iterator

from gradinspect.analyses.cut import describe_cut, lost_places, uses_in_whole
from gradinspect.analyses.summary import describe_capture
from gradinspect.graph import Graph
from gradinspect.renderers import dot_boxes as looks
from gradinspect.renderers.colouring import Colouring, Swatch
from gradinspect.renderers.dot_text import html, small
from gradinspect.renderers.drawing import Drawing
from gradinspect.renderers.drawing_parts import DrawOptions, Opening, is_detailed
from gradinspect.units import format_count

ENTRIES_IN_A_ROW = 2
MAX_LINE = 90


def caption(graph: Graph, drawing: Drawing, options: DrawOptions, colouring: Colouring | None = None) -> str:
    """Write the caption and the legend."""
    source = f"<B>{html(graph.source)}</B>  " if graph.captured_at.kind in {"backward", "grad"} else ""
    lines = [source + html(describe_capture(graph), MAX_LINE), _counts(graph, options)]
    lines += [html(line, MAX_LINE) for line in (*_left_out(graph, drawing, options), *drawing.notes)]
    rows = [f'<TR><TD ALIGN="LEFT" COLSPAN="{2 * ENTRIES_IN_A_ROW}">{line}</TD></TR>' for line in lines]
    rows += [] if colouring is None else [_scale(colouring)]
    entries = [*_legend(graph, drawing, options), *([] if colouring is None else _marks(colouring))]
    starts = range(0, len(entries), ENTRIES_IN_A_ROW)
    rows += [f"<TR>{''.join(entries[start : start + ENTRIES_IN_A_ROW])}</TR>" for start in starts]
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1">{"".join(rows)}</TABLE>'
    return f"<{small(table, '#222222', 9)}>"


def _counts(graph: Graph, options: DrawOptions) -> str:
    if options.cut is not None:
        return f"<B>{html(describe_cut(options.cut), MAX_LINE)}</B>"
    edges = [edge for node in graph.nodes for edge in node.next_edges]
    leaves = sum(node.kind == "accumulate_grad" for node in graph.nodes)
    nones = f" ({edges.count(None):,} None)" if None in edges else ""
    nodes = format_count(len(graph.nodes), "node")
    return f"{nodes}, {format_count(len(edges), 'edge')}{nones}, {format_count(leaves, 'leaf', 'leaves')}"


def _left_out(graph: Graph, drawing: Drawing, options: DrawOptions) -> Iterator[str]:
    repeats = sum(isinstance(part, Opening) and bool(part.scope.copies) for part in drawing.parts)
    if repeats:
        yield f"{format_count(repeats, 'repeat')} drawn once; the other copies are one box with the edges around it"
    chains = sum(box.kind == "shapes" for box in drawing.boxes)
    if chains:
        yield f"{format_count(chains, 'chain')} of views and transposes folded to a box each"
    closed = sum(box.kind == "closed" for box in drawing.boxes)
    if closed:
        yield f"{format_count(closed, 'box', 'boxes')} closed; leaves of a closed box are counted, not drawn"
    if not options.none_edges and _has_none_edges(graph, options):
        yield "None edges are not drawn"


def _has_none_edges(graph: Graph, options: DrawOptions) -> bool:
    return any(
        node.next_edges.count(None) > len(lost_places(options.cut, node_id)) for node_id, node in enumerate(graph.nodes)
    )


def _legend(graph: Graph, drawing: Drawing, options: DrawOptions) -> list[str]:
    """Explain the marks that are in the picture, and no others."""
    drawn = [graph.nodes[box.ids.stop - 1] for box in drawing.boxes if is_detailed(box)]
    used = {edge.next_node for node in drawn for edge in node.next_edges if edge} | {root.node for root in graph.roots}
    uses = uses_in_whole(graph, options.cut)
    leaf_counts = [uses[node_id] for node_id in used if graph.nodes[node_id].kind == "accumulate_grad"]
    kinds = {box.kind for box in drawing.boxes}
    has_tensor = any(value.kind == "tensor" for node in drawn for value in node.saved)
    fill = str if options.colour_by is None else lambda _: ""
    copies = "copies of the part above it" + ("" if options.colour_by is None else ", one cell each")
    white = '<FONT COLOR="#FFFFFF">{}</FONT>'.format
    entries = (
        (True, _entry("→", "the way gradients flow: root to leaf")),
        (graph.roots, _entry(white("root"), "where backward starts", fill=looks.ROOT_FILL)),
        (leaf_counts, _entry(white("+="), "AccumulateGrad: adds into .grad", fill=looks.ACCUMULATE_GRAD_FILL)),
        (
            min(leaf_counts, default=2) <= 1,
            _entry("leaf", "parameter or input", fill(looks.LEAF_FILL), looks.LEAF_LINE),
        ),
        (
            max(leaf_counts, default=0) > 1,
            _entry("leaf", "the same leaf, at each use", fill(looks.SHARED_FILL), looks.SHARED_LINE),
        ),
        (any(map(looks.is_custom, drawn)), _entry("fn", "custom Function", fill(looks.CUSTOM_FILL), looks.CUSTOM_LINE)),
        ("closed" in kinds, _entry("box", "closed module call or repeat", fill(looks.CLOSED_FILL), looks.CLOSED_LINE)),
        ("copies" in kinds, _entry("more", copies, fill(looks.COPIES_FILL), looks.COPIES_LINE)),
        (options.saved and has_tensor, _entry("note", "saved tensor", "#FFFFFF", "#333333")),
        (options.none_edges and _has_none_edges(graph, options), _entry("<B>.</B>", "None: no gradient")),
        (options.cut is not None, _entry(small("cut", looks.CUT_LINE), "edge to what is left out")),
    )
    return [entry for is_drawn, entry in entries if is_drawn]


def _scale(colouring: Colouring) -> str:
    """Write the scale of fills as one row."""
    cells = "".join(_filled(swatch, "#777777") for swatch in colouring.scale)
    row = f"<TR><TD>{html(colouring.title)} </TD>{cells}</TR>"
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" COLOR="#777777">{row}</TABLE>'
    return f'<TR><TD ALIGN="LEFT" COLSPAN="{2 * ENTRIES_IN_A_ROW}">{table}</TD></TR>'


def _marks(colouring: Colouring) -> list[str]:
    return [f'{_filled(swatch)}<TD ALIGN="LEFT">{html(swatch.words)}</TD>' for swatch in colouring.marks]


def _filled(swatch: Swatch, line: str = "") -> str:
    look = swatch.look
    line = look.line or line
    border = f' BORDER="1" COLOR="{line}"' if line else ""
    dashed = ' STYLE="dashed"' if look.style else ""
    return f'<TD BGCOLOR="{look.fill}"{border}{dashed}><FONT COLOR="{look.ink}">{html(swatch.text)}</FONT></TD>'


def _entry(mark: str, words: str, fill: str = "", line: str = "") -> str:
    background = f' BGCOLOR="{fill}"' if fill else ""
    border = f' BORDER="1" COLOR="{line}"' if line else ""
    return f'<TD{background}{border}>{mark}</TD><TD ALIGN="LEFT">{words}</TD>'
