"""The page's data about each node.

What comes in: a `Graph`. What goes out: records; repeated texts are stored once and referred to by index.
"""

import math
from collections import Counter
from collections.abc import Iterator

from gradinspect.analyses.gradients.observed import arriving_norm, gradients_of, parameter_rows
from gradinspect.analyses.memory.compiled import eager_words
from gradinspect.analyses.memory.saved_rows import SavedTable
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node, storages_of
from gradinspect.analyses.structure.call_names import leaf_shown, shown_path
from gradinspect.analyses.structure.cut import Cut, uses_in_whole
from gradinspect.analyses.structure.devices import crossings
from gradinspect.analyses.structure.node_names import function_words, hook_names
from gradinspect.graph import Graph, Node, Record, SavedValue, TensorInfo, argument_name
from gradinspect.renderers.picture.colors.kinds import tensor_of
from gradinspect.units import escape_control, format_tensor


class PageEdge(Record, frozen=True, kw_only=True, array_like=True):
    """Where a gradient goes."""

    next_node: int
    input_nr: int = 0
    argument: int | None = None  # index of a text


class PageSaved(Record, frozen=True, kw_only=True, array_like=True):
    """One saved attribute, as in the saved-attribute table. All fields except the bytes are indices of texts."""

    attribute: int
    value: int
    num_bytes: int | None
    status: int
    origin: int
    storage: int | None = None


class PageLeaf(Record, frozen=True, kw_only=True):
    """The tensor behind an AccumulateGrad node."""

    name: int
    tensor: int
    kind: int
    uses: int
    aliases: tuple[int, ...] = ()
    requires_grad: bool = True
    storage: int | None = None


class PageNode(Record, frozen=True, kw_only=True):
    """One node. Fields with default values are omitted."""

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
    bytes: int = 0  # of storages that no earlier node saves
    flops: int = 0  # of the forward op and of its backward, if torch has formulas
    dtype: int | None = None
    device: int | None = None  # if it differs from that of most nodes
    norm: float | str | None = None  # of the incoming gradient; a text if it is not finite
    alone: bool = False  # the only node of its module call


class Texts:
    """Assigns an index to each distinct text."""

    def __init__(self) -> None:
        """Start empty."""
        self.places: dict[str, int] = {}  # of texts as they are shown
        self._known: dict[str, int] = {}  # of texts as they came
        self._tensors: dict[int, tuple[TensorInfo, int]] = {}  # by identity, as most tensors share their description

    def place(self, text: str) -> int:
        """Return the index of a text, adding it if it is new."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self.places.setdefault(escape_control(text), len(self.places))
        return found

    def place_tensor(self, info: TensorInfo) -> int:
        """Return the index of the text that describes a tensor."""
        found = self._tensors.get(id(info))
        if found is None:
            found = self._tensors[id(info)] = (info, self.place(format_tensor(info)))
        return found[1]


def page_nodes(graph: Graph, cut: Cut | None, texts: Texts, alone: set[int]) -> Iterator[PageNode]:
    """Yield the nodes.

    Args:
        graph: The graph.
        cut: What is missing, if the graph is part of another.
        texts: Collects the texts that nodes refer to.
        alone: Nodes that are the only node of their module call.
    """
    edges, saved = _Edges(graph, texts), _SavedValues(graph, texts)
    num_bytes, uses, norms = held_bytes_by_node(graph), uses_in_whole(graph, cut), _norms(graph)
    usual = usual_device(graph)
    for node_id, node in enumerate(graph.nodes):
        tensor = tensor_of(node)
        function = function_words(graph, node_id)
        yield PageNode(
            name=texts.place(node.name),
            kind=texts.place(node.kind),
            outputs=_outputs(node, texts),
            edges=edges.of(node_id, node),
            saved=tuple([saved.of(node_id, value) for value in node.saved]),
            leaf=_leaf(graph, node, uses[node_id], texts),
            function=None if function is None else texts.place(function),
            made_by=None if node.made_by is None else texts.place(node.made_by),
            module=node.module,
            frame=node.frame,
            hooks=tuple(map(texts.place, hook_names(node))),
            bytes=num_bytes[node_id],
            flops=(node.flops or 0) + (node.backward_flops or 0),
            dtype=None if tensor is None else texts.place(tensor.dtype),
            device=None if tensor is None or tensor.device == usual else texts.place(tensor.device),
            norm=norms.get(node_id),
            alone=node_id in alone,
        )


def usual_device(graph: Graph) -> str:
    """Return the device of most nodes."""
    devices = Counter(tensor.device for tensor in map(tensor_of, graph.nodes) if tensor is not None)
    return min(devices, key=lambda device: (-devices[device], device), default="")


def _outputs(node: Node, texts: Texts) -> tuple[int, ...]:
    return tuple([texts.place("none") if info is None else texts.place_tensor(info) for info in node.forward_outputs])


class _Edges:
    """Describes the edges of nodes, whose arguments have the same names for all of a class with as many edges."""

    def __init__(self, graph: Graph, texts: Texts) -> None:
        self._graph = graph
        self._texts = texts
        self._names: dict[tuple[str, int], list[str | None]] = {}
        self._crossings = crossings(graph)

    def of(self, node_id: int, node: Node) -> tuple[PageEdge | None, ...]:
        key = node.name, len(node.next_edges)
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = [argument_name(self._graph, node, position) for position in range(key[1])]
        place = self._texts.place
        crossed = {one.head: f"{one.start} → {one.end}" for one in self._crossings.get(node_id, ())}
        if crossed:
            heads = (None if edge is None else crossed.get(edge.next_node) for edge in node.next_edges)
            names = [_joined(name, to) or None for name, to in zip(names, heads, strict=True)]
        return tuple(
            [
                None
                if edge is None
                else PageEdge(
                    next_node=edge.next_node, input_nr=edge.input_nr, argument=None if name is None else place(name)
                )
                for edge, name in zip(node.next_edges, names, strict=True)
            ]
        )


def _joined(word: str | None, more: str | None) -> str:
    return f"{word} {more}" if word and more else word or more or ""


class _SavedValues:
    """Describes saved values; nodes share those that have no storage, such as numbers."""

    def __init__(self, graph: Graph, texts: Texts) -> None:
        self._table = SavedTable(graph)
        self._texts = texts
        self._shared: dict[int, PageSaved] = {}  # by identity

    def of(self, node_id: int, value: SavedValue) -> PageSaved:
        found = self._shared.get(id(value))
        if found is not None:
            return found
        row, storages, place = self._table.row(node_id, value), storages_of(value), self._texts.place
        made = PageSaved(
            attribute=place(row.attribute),
            value=place(row.value),
            num_bytes=row.num_bytes,
            status=place(_joined(row.status, row.status_detail)),
            origin=place(_joined(_joined(row.origin, row.shown_origin), eager_words(row.kept_by_eager))),
            storage=storages[0] if storages else None,
        )
        if not storages:
            self._shared[id(value)] = made
        return made


def _leaf(graph: Graph, node: Node, uses: int, texts: Texts) -> PageLeaf | None:
    if node.leaf is None:
        return None
    return PageLeaf(
        name=texts.place(leaf_shown(graph, node.leaf)),
        tensor=texts.place_tensor(node.leaf.info),
        kind=texts.place(node.leaf.kind),
        uses=uses,
        aliases=tuple(texts.place(shown_path(alias, graph.model_name)) for alias in node.leaf.aliases),
        requires_grad=node.leaf.requires_grad,
        storage=node.leaf.storage,
    )


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
    """Round to the digits that matter; JSON has no non-finite numbers, and rounding can make one of the largest."""
    rounded = float(f"{norm:.4g}")
    if math.isfinite(rounded):
        return rounded
    return norm if math.isfinite(norm) else str(norm)
