"""Forget where the tensors of a graph are: the same program on the CPU and on a GPU is then the same graph."""

from msgspec.structs import replace

from gradinspect.graph import Graph, Node, SavedValue, TensorInfo

ANYWHERE = TensorInfo(shape=(), dtype="").device  # that of a record which names none


def without_devices(graph: Graph) -> Graph:
    """Return the graph with all tensors and storages on the same device."""
    names = _names_of_devices(graph)
    return replace(
        graph,
        nodes=tuple(_node(node, names) for node in graph.nodes),
        roots=tuple(replace(root, info=_info(root.info)) for root in graph.roots),
        storages=tuple(replace(storage, device=ANYWHERE) for storage in graph.storages),
    )


def _names_of_devices(graph: Graph) -> frozenset[str]:
    """Return how a node may have stored where its tensors were: "cuda:0", "cuda"."""
    found = {storage.device for storage in graph.storages}
    found |= {info.device for node in graph.nodes for info in node.forward_outputs if info is not None}
    return frozenset(found | {name.partition(":")[0] for name in found})


def _node(node: Node, names: frozenset[str]) -> Node:
    return replace(
        node,
        forward_outputs=tuple(map(_info, node.forward_outputs)),
        saved=tuple(_saved(value, names) for value in node.saved),
        leaf=None if node.leaf is None else replace(node.leaf, info=replace(node.leaf.info, device=ANYWHERE)),
    )


def _saved(value: SavedValue, names: frozenset[str]) -> SavedValue:
    if value.tensor is None:
        is_device = value.kind == "device" or (value.kind == "str" and value.value in names)
        return replace(value, value=ANYWHERE) if is_device else value
    return replace(value, tensor=replace(value.tensor, info=replace(value.tensor.info, device=ANYWHERE)))


def _info(info: TensorInfo | None) -> TensorInfo | None:
    return None if info is None else replace(info, device=ANYWHERE)
