"""Forget where the tensors of a graph are: the same program on the CPU and on a GPU is then the same graph."""

from msgspec.structs import replace

from gradinspect.graph import Graph, Node, SavedValue, TensorInfo

ANYWHERE = TensorInfo(shape=(), dtype="").device  # that of a record which names none


def without_devices(graph: Graph) -> Graph:
    """Return the graph with all tensors and storages on the same device."""
    return replace(
        graph,
        nodes=tuple(_node(node) for node in graph.nodes),
        roots=tuple(replace(root, info=_info(root.info)) for root in graph.roots),
        storages=tuple(replace(storage, device=ANYWHERE) for storage in graph.storages),
    )


def _node(node: Node) -> Node:
    return replace(
        node,
        forward_outputs=tuple(map(_info, node.forward_outputs)),
        saved=tuple(map(_saved, node.saved)),
        leaf=None if node.leaf is None else replace(node.leaf, info=replace(node.leaf.info, device=ANYWHERE)),
    )


def _saved(value: SavedValue) -> SavedValue:
    if value.tensor is None:
        return value
    return replace(value, tensor=replace(value.tensor, info=replace(value.tensor.info, device=ANYWHERE)))


def _info(info: TensorInfo | None) -> TensorInfo | None:
    return None if info is None else replace(info, device=ANYWHERE)
