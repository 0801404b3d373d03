"""Validate what types cannot express: every index is in range, nothing is cyclic or negative.

The rest of the package relies on this and does not check again.
"""

from collections.abc import Sequence

from gradinspect.graph import Edge, Graph, Measured, Node, SavedTensor, SavedValue, Size, TensorInfo, stats_of

_MAX_NR = 2**31  # of outputs and list positions, which torch stores in 32 bits
_MAX_ARGUMENTS = 1000  # of one operator; ten times the most in torch


class InvalidPlaceError(Exception):
    """An invalid record."""

    def __init__(self, place: str, reason: str) -> None:
        """Store the path from the graph (`.nodes[0].frame`), and the reason."""
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


def check_graph(graph: Graph) -> None:
    """Check every index, order and count of a record.

    Raises:
        InvalidPlaceError: The first invalid place.
    """
    for index, module in enumerate(graph.modules):
        _check_earlier(module.parent, index, f".modules[{index}].parent")
    for index, frame in enumerate(graph.frames):
        _check_earlier(frame.caller, index, f".frames[{index}].caller")
    for index, storage in enumerate(graph.storages):
        _check_count(storage.num_bytes, f".storages[{index}].num_bytes")
    for name, arguments in graph.arguments.items():
        if len(arguments) > _MAX_ARGUMENTS:
            raise InvalidPlaceError(f".arguments[{name[:100]!r}]", f"{len(arguments)} arguments are too many")
    _check_index(graph.captured_at.frame, len(graph.frames), ".captured_at.frame", "frame")
    for index, root in enumerate(graph.roots):
        _check_index(root.node, len(graph.nodes), f".roots[{index}].node", "node")
        _check_nr(root.output_nr, f".roots[{index}].output_nr")
        _check_info(root.info, f".roots[{index}].info")
    for index, node in enumerate(graph.nodes):
        _check_node(graph, index, node)
    _check_compilation(graph)


def _check_compilation(graph: Graph) -> None:
    done = graph.compilation
    if done is None:
        return
    _check_count(done.num_graphs, ".compilation.num_graphs")
    places = {
        ".compilation.breaks": [(one.frame, one.count) for one in done.breaks],
        ".compilation.recompiles": [(one.frame, one.count) for one in done.recompiles],
    }
    for place, several in places.items():
        for index, (frame, count) in enumerate(several):
            _check_index(frame, len(graph.frames), f"{place}[{index}].frame", "frame")
            _check_count(count, f"{place}[{index}].count")


def check_gradients(graph: Graph) -> None:
    """Check the recorded gradients against the nodes.

    Raises:
        InvalidPlaceError: The first invalid place.
    """
    if graph.gradients is None:
        return
    before = -1
    for index, ran in enumerate(graph.gradients.nodes):
        place = f".nodes[{index}]"
        _check_index(ran.node, len(graph.nodes), f"{place}.node", "node")
        if ran.node <= before:
            raise InvalidPlaceError(f"{place}.node", f"{ran.node} does not come after {before}")
        before = ran.node
        _check_count(ran.order, f"{place}.order")
        for name, several in (("incoming", ran.incoming), ("outgoing", ran.outgoing)):
            for position, stats in enumerate(several):
                _check_stats(stats, f"{place}.{name}[{position}]")
    for name in ("weight_norms", "update_norms"):
        for node_id, norm in getattr(graph.gradients, name).items():
            _check_index(node_id, len(graph.nodes), f".{name}", "node")
            _check_norm(norm, f".{name}[{node_id}]")


def check_values(graph: Graph) -> None:
    """Check the recorded fingerprints against the nodes.

    Raises:
        InvalidPlaceError: The first invalid place.
    """
    before = -1
    for index, values in enumerate(graph.values):
        _check_index(values.node, len(graph.nodes), f"[{index}].node", "node")
        if values.node <= before:
            raise InvalidPlaceError(f"[{index}].node", f"{values.node} does not come after {before}")
        before = values.node


def _check_stats(measured: Measured, place: str) -> None:
    stats = stats_of(measured)
    if stats is not None:
        _check_sizes(stats.shape, f"{place}.shape")
        for name in ("num_elements", "num_zeros", "num_nonfinite"):
            _check_count(getattr(stats, name), f"{place}.{name}")
        _check_norm(stats.norm, f"{place}.norm")
        _check_norm(stats.max_abs, f"{place}.max_abs")


def _check_norm(norm: float, place: str) -> None:
    if norm < 0:  # NaN and infinity are valid
        raise InvalidPlaceError(place, f"{norm} is not a norm")


def _check_node(graph: Graph, node_id: int, node: Node) -> None:
    place = f".nodes[{node_id}]"
    for position, edge in enumerate(node.next_edges):
        if edge is not None:
            _check_edge(edge, node_id, len(graph.nodes), f"{place}.next_edges[{position}]")
    for position, info in enumerate(node.forward_outputs):
        _check_info(info, f"{place}.forward_outputs[{position}]")
    for position, value in enumerate(node.saved):
        _check_saved(graph, value, f"{place}.saved[{position}]")
    _check_index(node.module, len(graph.modules), f"{place}.module", "module")
    _check_index(node.frame, len(graph.frames), f"{place}.frame", "frame")
    _check_leaf(graph, node, place)


def _check_edge(edge: Edge, node_id: int, num_nodes: int, place: str) -> None:
    if not node_id < edge.next_node < num_nodes:  # NOTE [Topological ids]
        _check_index(edge.next_node, num_nodes, f"{place}.next_node", "node")
        raise InvalidPlaceError(f"{place}.next_node", f"{edge.next_node} does not come after {node_id}")
    _check_nr(edge.input_nr, f"{place}.input_nr")


def _check_leaf(graph: Graph, node: Node, place: str) -> None:
    is_leaf = node.kind == "accumulate_grad"
    if is_leaf != (node.leaf is not None):
        raise InvalidPlaceError(
            f"{place}.leaf", f"a node of kind {node.kind} {'needs a' if is_leaf else 'has no'} leaf"
        )
    if node.leaf is not None:
        _check_info(node.leaf.info, f"{place}.leaf.info")
        _check_index(node.leaf.storage, len(graph.storages), f"{place}.leaf.storage", "storage")


def _check_saved(graph: Graph, value: SavedValue, place: str) -> None:
    if value.index is not None:
        _check_nr(value.index, f"{place}.index")
    _check_index(value.frame, len(graph.frames), f"{place}.frame", "frame")
    if value.tensor is not None:
        if value.kind != "tensor":
            raise InvalidPlaceError(f"{place}.tensor", f"a value of kind {value.kind} has no tensor")
        _check_tensor(graph, value.tensor, f"{place}.tensor")
    for position, storage in enumerate(value.held_storages):
        _check_index(storage, len(graph.storages), f"{place}.held_storages[{position}]", "storage")


def _check_tensor(graph: Graph, tensor: SavedTensor, place: str) -> None:
    _check_info(tensor.info, f"{place}.info")
    _check_count(tensor.num_bytes, f"{place}.num_bytes")
    _check_count(tensor.storage_offset, f"{place}.storage_offset")
    _check_index(tensor.storage, len(graph.storages), f"{place}.storage", "storage")
    _check_index(tensor.made_by, len(graph.nodes), f"{place}.made_by", "node")
    if tensor.strides is not None:
        _check_sizes(tensor.strides, f"{place}.strides")


def _check_info(info: TensorInfo | None, place: str) -> None:
    if info is not None:
        _check_sizes(info.shape, f"{place}.shape")


def _check_sizes(sizes: Sequence[Size], place: str) -> None:
    for position, size in enumerate(sizes):
        if type(size) is int and not 0 <= size < 2**63:
            raise InvalidPlaceError(f"{place}[{position}]", f"{size} is not a size")


def _check_index(index: int | None, length: int, place: str, noun: str) -> None:
    if index is not None and not 0 <= index < length:
        raise InvalidPlaceError(place, f"{index} is not a {noun}")


def _check_earlier(index: int | None, own: int, place: str) -> None:
    """Check that parents and callers come before what they contain, which rules out cycles."""
    if index is not None and not 0 <= index < own:
        raise InvalidPlaceError(place, f"{index} does not come before {own}")


def _check_count(count: int, place: str) -> None:
    if not 0 <= count < 2**63:
        raise InvalidPlaceError(place, f"{count} is not a count")


def _check_nr(nr: int, place: str) -> None:
    if not 0 <= nr < _MAX_NR:
        raise InvalidPlaceError(place, f"{nr} is not a position")
