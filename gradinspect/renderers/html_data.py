"""What the page knows of a graph, as JSON.

What comes in: a `Graph`. What goes out: text in ASCII without `<`, `>` or `&`, so that nothing in it can end or begin
an element. A text that comes often is written once, in `texts`, and named by its place.
"""

import json
import math
from collections.abc import Iterator

import msgspec

from gradinspect.analyses.cut import Cut, describe_cut, uses_in_whole
from gradinspect.analyses.folding import first_saved_bytes, fold_graph
from gradinspect.analyses.gradients import arriving_norm, gradients_of, parameter_rows
from gradinspect.analyses.saved_rows import SavedRow, saved_rows
from gradinspect.analyses.summary import Summary, summarize
from gradinspect.graph import Edge, Graph, Node, Record, argument_name
from gradinspect.renderers.drawing_parts import DrawOptions
from gradinspect.renderers.html_tree import page_scopes
from gradinspect.units import escape_control, format_bytes, format_count, format_tensor


class PageEdge(Record, frozen=True, kw_only=True, array_like=True):
    """Where a gradient goes."""

    next_node: int
    input_nr: int = 0
    argument: int | None = None  # text


class PageSaved(Record, frozen=True, kw_only=True, array_like=True):
    """One saved attribute, as the saved-attribute table shows it. All but the bytes are texts."""

    attribute: int
    value: int
    num_bytes: int | None
    status: int
    origin: int


class PageLeaf(Record, frozen=True, kw_only=True):
    """The tensor behind an AccumulateGrad node."""

    name: int
    tensor: int
    kind: int
    uses: int
    aliases: tuple[int, ...] = ()
    requires_grad: bool = True


class PageNode(Record, frozen=True, kw_only=True):
    """One node. A field that is not written has its default."""

    name: int
    kind: int
    outputs: tuple[int, ...] = ()
    edges: tuple[PageEdge | None, ...] = ()
    saved: tuple[PageSaved, ...] = ()
    leaf: PageLeaf | None = None
    function: int | None = None
    made_by: int | None = None
    module: int | None = None
    frame: int | None = None
    hooks: tuple[int, ...] = ()
    bytes: int = 0  # of storages that no node before it saves
    dtype: int | None = None
    norm: float | str | None = None  # of the gradient that arrives; a text when it is not finite
    alone: bool = False  # all of its module call


class _Texts:
    """Gives each text its place."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self.places.setdefault(escape_control(text), len(self.places))


def page_json(graph: Graph, options: DrawOptions) -> str:
    """Write everything the page shows of a graph."""
    scopes, alone = page_scopes(graph, fold_graph(graph, shapes=options.fold_shapes))
    texts = _Texts()
    nodes = _nodes(graph, options.cut, texts, alone)
    figures = summarize(graph)
    page = {
        "title": escape_control(graph.source),
        "captured": escape_control(figures.captured_at),
        "torch": escape_control(graph.torch_version),
        "figures": _figures(figures) if options.cut is None else [escape_control(describe_cut(options.cut))],
        "warnings": [escape_control(warning) for warning in graph.warnings],
        "hasGradients": graph.gradients is not None,
        "cut": None if options.cut is None else _cut(options.cut),
        "colourBy": options.colour_by,
        "depth": options.depth,
        "roots": [[root.node, root.output_nr, escape_control(root.name or "")] for root in graph.roots],
        "modules": [[escape_control(call.path), escape_control(call.class_name), call.call] for call in graph.modules],
        "frames": [
            [escape_control(frame.file), frame.line, *map(escape_control, (frame.function, frame.code)), frame.caller]
            for frame in graph.frames
        ],
        "scopes": msgspec.to_builtins(scopes),
        "nodes": msgspec.to_builtins(nodes),
        "texts": list(texts.places),
    }
    return _harmless(json.dumps(page, separators=(",", ":"), allow_nan=False))


def _figures(figures: Summary) -> list[str]:
    return [
        format_count(figures.nodes, "node"),
        format_count(figures.edges - figures.none_edges, "edge"),
        format_count(figures.leaves, "leaf", "leaves"),
        f"{format_bytes(figures.saved_bytes)} saved",
    ]


def _cut(cut: Cut) -> dict[str, object]:
    return {"numbers": cut.numbers, "lost": cut.lost_places, "came": cut.lost_users}


def _harmless(text: str) -> str:
    """Write what could end the element as JSON escapes; `json` has written all that is not ASCII so."""
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _nodes(graph: Graph, cut: Cut | None, texts: _Texts, alone: set[int]) -> list[PageNode]:
    saved = _saved_by_node(graph)
    num_bytes, uses, norms = first_saved_bytes(graph), uses_in_whole(graph, cut), _norms(graph)
    return [
        PageNode(
            name=texts.place(node.name),
            kind=texts.place(node.kind),
            outputs=tuple(
                texts.place("none" if info is None else format_tensor(info)) for info in node.forward_outputs
            ),
            edges=tuple(_edge(graph, node, position, edge, texts) for position, edge in enumerate(node.next_edges)),
            saved=tuple(_saved(row, texts) for row in saved.get(node_id, ())),
            leaf=_leaf(node, uses[node_id], texts),
            function=None if node.function is None else texts.place(node.function),
            made_by=None if node.made_by is None else texts.place(node.made_by),
            module=node.module,
            frame=node.frame,
            hooks=tuple(texts.place(f"{hook.kind}: {hook.name or 'a function'}") for hook in node.hooks),
            bytes=num_bytes[node_id],
            dtype=_dtype(node, texts),
            norm=norms.get(node_id),
            alone=node_id in alone,
        )
        for node_id, node in enumerate(graph.nodes)
    ]


def _edge(graph: Graph, node: Node, position: int, edge: Edge | None, texts: _Texts) -> PageEdge | None:
    if edge is None:
        return None
    name = argument_name(graph, node, position)
    return PageEdge(
        next_node=edge.next_node, input_nr=edge.input_nr, argument=None if name is None else texts.place(name)
    )


def _saved_by_node(graph: Graph) -> dict[int, list[SavedRow]]:
    rows: dict[int, list[SavedRow]] = {}
    for row in saved_rows(graph):
        rows.setdefault(row.node, []).append(row)
    return rows


def _saved(row: SavedRow, texts: _Texts) -> PageSaved:
    return PageSaved(
        attribute=texts.place(row.attribute),
        value=texts.place(row.value),
        num_bytes=row.num_bytes,
        status=texts.place(" ".join(filter(None, (row.status, row.status_detail)))),
        origin=texts.place(" ".join(filter(None, (row.origin, row.origin_name)))),
    )


def _leaf(node: Node, uses: int, texts: _Texts) -> PageLeaf | None:
    if node.leaf is None:
        return None
    return PageLeaf(
        name=texts.place(node.leaf.name or ""),
        tensor=texts.place(format_tensor(node.leaf.info)),
        kind=texts.place(node.leaf.kind),
        uses=uses,
        aliases=tuple(map(texts.place, node.leaf.aliases)),
        requires_grad=node.leaf.requires_grad,
    )


def _dtype(node: Node, texts: _Texts) -> int | None:
    infos = (None if node.leaf is None else node.leaf.info, *node.forward_outputs)
    return next((texts.place(info.dtype) for info in infos if info is not None), None)


def _norms(graph: Graph) -> dict[int, float | str]:
    return {} if graph.gradients is None else dict(_each_norm(graph))


def _each_norm(graph: Graph) -> Iterator[tuple[int, float | str]]:
    for ran in gradients_of(graph).nodes:
        norm = arriving_norm(ran)
        if norm is not None:
            yield ran.node, _plain(norm)
    for row in parameter_rows(graph):
        if row.stats is not None:
            yield row.node, _plain(row.stats.norm)


def _plain(norm: float) -> float | str:
    """Keep the digits a reader looks at; JSON has no number for what is not finite."""
    return float(f"{norm:.4g}") if math.isfinite(norm) else str(norm)
