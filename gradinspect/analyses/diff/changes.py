"""What differs between two nodes that are matched.

What comes in: two readings and their matching. What goes out: a `ChangedNode` for each pair that differs.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from gradinspect.analyses.diff.matching import Matching
from gradinspect.analyses.diff.reading import Reading, saved_content
from gradinspect.analyses.diff.records import Aspect, ChangedNode, Detail
from gradinspect.analyses.structure.node_names import class_name_of
from gradinspect.graph import Edge, Graph, Node, SavedValue, Size, TensorInfo, argument_name
from gradinspect.units import format_dtype, format_shape, format_tensor


def changed_nodes(
    before: Reading, after: Reading, matching: Matching, ignored: frozenset[Aspect]
) -> tuple[ChangedNode, ...]:
    """List the pairs that differ, in the order of the forward pass of B."""
    differ = _Differ(before, after, matching, ignored)
    places = {node_id: place for place, node_id in enumerate(after.order)}
    found = filter(None, (differ.compare(mine, theirs) for mine, theirs in matching.nodes.items()))
    return tuple(sorted(found, key=lambda node: places[node.node_after]))


class _Differ:
    def __init__(self, before: Reading, after: Reading, matching: Matching, ignored: frozenset[Aspect]) -> None:
        self.before, self.after = before, after
        self.matching = matching
        self.ignored = ignored
        self._taken = set(matching.nodes.values())
        self._codes = [[frame.code for frame in reading.graph.frames] for reading in (before, after)]

    def compare(self, mine: int, theirs: int) -> ChangedNode | None:
        """Compare two nodes."""
        node, other = self.before.graph.nodes[mine], self.after.graph.nodes[theirs]
        if node.kind == "accumulate_grad":
            return None  # leaves are compared elsewhere
        details: list[Detail] = []
        if self.before.keys[mine].whole != self.after.keys[theirs].whole:
            details += [*_own_details(node, other)]
        if (node.hooks or other.hooks) and node.hooks != other.hooks:
            details.append(Detail("hooks", before=_hooks(node), after=_hooks(other)))
        if "order" not in self.ignored:
            details += self._inputs(mine, theirs)
            details += self._module(node, other)
        if "lines" not in self.ignored:
            details += self._line(node, other)
        held = 0 if "bytes" in self.ignored else self.after.held[theirs] - self.before.held[mine]
        if not details and not held:
            return None
        return ChangedNode(node_before=mine, node_after=theirs, details=tuple(details), held_bytes=held)

    def _inputs(self, mine: int, theirs: int) -> Iterator[Detail]:
        """Compare where gradients flow to, position by position: NOTE [Arguments of other operators].

        What a node that only one graph has explains by itself is not repeated at those around it.
        """
        edges, others = self.before.graph.nodes[mine].next_edges, self.after.graph.nodes[theirs].next_edges
        if edges == others and self._are_same(edges):
            return
        for place, other_place in self._pairs(mine, theirs):
            edge = None if place is None else edges[place]
            other = None if other_place is None else others[other_place]
            if self._is_explained(edge, other):
                continue
            graph, node_id, position = (self.before.graph, mine, place) if other_place is None else (
                self.after.graph, theirs, other_place)  # fmt: skip
            name = argument_name(graph, graph.nodes[node_id], position or 0)
            words = _source(self.before.graph, edge), _source(self.after.graph, other)
            if words[0] == words[1]:  # the same operator elsewhere
                words = words[0], f"another {words[1]}"
            yield Detail("inputs", name or f"position {position}", *words)

    def _pairs(self, mine: int, theirs: int) -> Iterator[tuple[int | None, int | None]]:
        """Yield the positions that are compared with each other.

        NOTE [Arguments of other operators]
        The second argument of `addmm` is the first of `mm`. So where the operators differ, what leads to the same
        node belongs together, then what has the same name, and the rest stands alone.
        """
        node, other = self.before.graph.nodes[mine], self.after.graph.nodes[theirs]
        places, others = list(range(len(node.next_edges))), list(range(len(other.next_edges)))
        if node.name == other.name:
            yield from zip_longest(places, others)
            return
        for place in list(places):
            for other_place in others:
                edge, target = node.next_edges[place], other.next_edges[other_place]
                if edge is not None and target is not None and self._leads_alike(edge, target):
                    places.remove(place)
                    others.remove(other_place)
                    break
        named = {argument_name(self.after.graph, other, place): place for place in others}
        for place in places:
            name = argument_name(self.before.graph, node, place)
            yield place, named.pop(name, None) if name else None
        yield from ((None, place) for place in named.values())

    def _leads_alike(self, edge: Edge, other: Edge) -> bool:
        return self.matching.nodes.get(edge.next_node) == other.next_node and edge.input_nr == other.input_nr

    def _are_same(self, edges: Sequence[Edge | None]) -> bool:
        matched = self.matching.nodes
        return all(edge is None or matched.get(edge.next_node) == edge.next_node for edge in edges)

    def _is_explained(self, edge: Edge | None, other: Edge | None) -> bool:
        if edge is not None and (edge.next_node not in self.matching.nodes):
            return True
        if other is not None and other.next_node not in self._taken:
            return True
        if edge is None or other is None:
            return edge is other
        return self._leads_alike(edge, other)

    def _module(self, node: Node, other: Node) -> Iterator[Detail]:
        expected = None if node.module is None else self.matching.calls.get(node.module)
        if expected != other.module:
            yield Detail("module", before=_module_of(self.before, node), after=_module_of(self.after, other))

    def _line(self, node: Node, other: Node) -> Sequence[Detail]:
        """Compare the text of the lines: their numbers change with every line above them."""
        code = "" if node.frame is None else self._codes[0][node.frame]
        other_code = "" if other.frame is None else self._codes[1][other.frame]
        return [] if code == other_code else [Detail("line", before=code, after=other_code)]


def _module_of(reading: Reading, node: Node) -> str:
    return "" if node.module is None else reading.calls[node.module].path or reading.graph.model_name


def _own_details(node: Node, other: Node) -> Iterator[Detail]:
    """Compare what belongs to the nodes alone: operator, outputs, saved values."""
    if (node.name, node.function) != (other.name, other.function):
        yield Detail("operator", before=class_name_of(node), after=class_name_of(other))
    for number in range(max(len(node.forward_outputs), len(other.forward_outputs))):
        yield from _tensors(
            f"output {number}" if len(other.forward_outputs) > 1 else "output",
            node.forward_outputs[number] if number < len(node.forward_outputs) else None,
            other.forward_outputs[number] if number < len(other.forward_outputs) else None,
        )
    if node.name == other.name:  # what another operator saves says nothing
        yield from _saved(node.saved, other.saved)


def _tensors(name: str, info: TensorInfo | None, other: TensorInfo | None) -> Iterator[Detail]:
    if info == other:
        return
    if info is None or other is None:
        yield Detail("tensor", name, *("" if one is None else format_tensor(one) for one in (info, other)))
        return
    if info.dtype != other.dtype:
        yield Detail("dtype", name, format_dtype(info.dtype), format_dtype(other.dtype))
    if info.shape != other.shape:
        yield Detail("shape", name, _shape(info.shape), _shape(other.shape))
    if info.local_shape != other.local_shape:
        yield Detail("shape", f"{name} local", *(_shape(one.local_shape) for one in (info, other)))
    if (info.device, info.layout, info.subclass) != (other.device, other.layout, other.subclass):
        yield Detail("tensor", name, *(" ".join(filter(None, (o.device, o.layout, o.subclass))) for o in (info, other)))


def _shape(shape: tuple[Size, ...] | None) -> str:
    return "" if shape is None else format_shape(shape)


def _saved(values: Sequence[SavedValue], others: Sequence[SavedValue]) -> Iterator[Detail]:
    mine = {(value.name, value.index): value for value in values}
    theirs = {(value.name, value.index): value for value in others}
    for key in {**mine, **theirs}:
        value, other = mine.get(key), theirs.get(key)
        if value is not None and other is not None and saved_content(value) == saved_content(other):
            continue
        name = key[0].removeprefix("_saved_") + ("" if key[1] is None else f"[{key[1]}]")
        yield Detail("saved", name, *_words(value, other))


def _words(value: SavedValue | None, other: SavedValue | None) -> tuple[str, str]:
    """Describe two values, at more length if their short descriptions are the same."""
    short = _describe(value), _describe(other)
    if short[0] != short[1]:
        return short
    parts = [(one, two) for one, two in zip(_at_length(value), _at_length(other), strict=False) if one != two]
    return ", ".join(one for one, _ in parts), ", ".join(two for _, two in parts)


def _describe(value: SavedValue | None) -> str:
    if value is None:
        return ""
    if value.tensor is not None:
        return format_tensor(value.tensor.info)
    return str(value.status or "tensor") if value.kind == "tensor" else str(value.value)


def _at_length(value: SavedValue | None) -> tuple[str, ...]:
    if value is None:
        return ()
    strides = (
        "contiguous" if value.tensor is None or value.tensor.strides is None else f"strides {value.tensor.strides}"
    )
    offset = 0 if value.tensor is None else value.tensor.storage_offset
    words = (value.status, value.origin, value.packed_as, value.unpack_hook)
    return value.kind, strides, f"offset {offset}", *(word or "none" for word in words)


def _hooks(node: Node) -> str:
    return ", ".join(f"{hook.kind} {hook.name or ''}".strip() for hook in node.hooks)


def _source(graph: Graph, edge: Edge | None) -> str:
    """Name the other end of an edge without its id."""
    if edge is None:
        return "None"
    node = graph.nodes[edge.next_node]
    name = (node.leaf.name or "a leaf") if node.leaf is not None else class_name_of(node)
    return f"{name} output {edge.input_nr}" if edge.input_nr else name
