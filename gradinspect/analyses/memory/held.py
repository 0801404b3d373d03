"""Memory held for backward: every saved storage once, with its kind and the nodes that keep it.

What comes in: a `Graph`. What goes out: `Memory`, whose storages add up to its total. `analyses.memory.rows` groups
them.

NOTE [Who counts a storage]
A storage saved by several nodes is counted for the one with the smallest id, the last in the forward pass, as in the
saved-attribute table and the tree. The others share it. What only one group keeps would be freed without that group.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias, get_args

from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, origins_of, storages_of
from gradinspect.analyses.structure.call_names import leaf_shown
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Node, Record, SavedTensor, SavedValue, TensorInfo
from gradinspect.methods import Shown

HeldAs: TypeAlias = Literal["activation", "output", "input", "cast", "packed", "checkpoint", "parameter", "buffer"]

# Nodes whose output is a view of their input. Only generated names; others do not forward a cast.
VIEWS = frozenset(
    f"{name}Backward{number}"
    for name in (
        "T", "Transpose", "View", "UnsafeView", "ReshapeAlias", "Expand", "Permute", "Select", "Slice", "Squeeze",
        "Unsqueeze", "Unbind", "Split", "SplitWithSizes", "AsStrided", "Alias", "Diagonal", "Unfold",
    )
    for number in range(5)
)  # fmt: skip
CAST = "ToCopyBackward0"


class HeldStorage(Record, frozen=True, kw_only=True):
    """A storage that the graph keeps alive as a whole, however little of it is used."""

    storage: int
    num_bytes: int
    held_as: HeldAs
    counted_by: int  # node id; NOTE [Who counts a storage]
    savers: tuple[int, ...]  # node ids, each once
    shown_bytes: int  # of the elements that the saved tensors use; less than num_bytes if a slice keeps a whole
    info: TensorInfo | None = None  # of the largest saved tensor; None if packed
    name: str | None = None  # of the parameter, buffer or variable
    attribute: str = ""  # where it is counted: "_saved_mat1"
    made_by: int | None = None  # node id
    cast_of: str | None = None  # "fc.weight", "f32[8, 64]"
    device: str = "cpu"


class Memory(Shown, Record, frozen=True, kw_only=True):
    """Everything held for backward."""

    total_bytes: int  # the sum over storages
    extra_bytes: int  # without parameters and buffers
    bytes_by_kind: dict[HeldAs, int]  # adds up to total_bytes; has every kind, even at 0
    num_recomputed: int  # saved values that a checkpoint will recompute
    storages: tuple[HeldStorage, ...]  # in order of their first savers
    extra_bytes_by_device: dict[str, int]  # adds up to extra_bytes; the device with most first


def measure_memory(graph: Graph, nodes: Collection[int] | None = None) -> Memory:
    """Find every storage that the graph keeps, and its kind.

    Args:
        graph: The graph.
        nodes: Look only at what these keep.

    Raises:
        GradInspectError: The record has no byte sizes, or backward has freed everything.
    """
    _check_has_bytes(graph)
    found: dict[int, list[tuple[int, SavedValue]]] = {}
    num_recomputed = 0
    for node_id, node in enumerate(graph.nodes):
        for value in node.saved if nodes is None or node_id in nodes else ():
            num_recomputed += value.status == "checkpointed"
            for storage in storages_of(value):
                found.setdefault(storage, []).append((node_id, value))
    origins = origins_of(graph, found)
    held = []
    for storage in tuple(found):
        uses = found.pop(storage)  # of a million, what is no longer needed makes room for the results
        held_as: HeldAs = origins[storage]
        cast_of = None
        if held_as not in IN_MEMORY_ANYWAY:
            cast_of = _cast_of(graph, uses)
            held_as = _kind(uses, held_as, is_cast=cast_of is not None)
        held.append(_held_storage(graph, storage, uses, held_as, cast_of if held_as == "cast" else None))
    by_kind: dict[HeldAs, int] = dict.fromkeys(get_args(HeldAs), 0)
    for item in held:
        by_kind[item.held_as] += item.num_bytes
    total = sum(by_kind.values())
    return Memory(
        total_bytes=total,
        extra_bytes=total - sum(by_kind[kind] for kind in IN_MEMORY_ANYWAY),
        bytes_by_kind=by_kind,
        num_recomputed=num_recomputed,
        storages=tuple(held),
        extra_bytes_by_device=_by_device(held),
    )


def _by_device(held: list[HeldStorage]) -> dict[str, int]:
    """Add up what is held beside weights on each device, the one with most first."""
    sums: Counter[str] = Counter()
    for item in held:
        if item.held_as not in IN_MEMORY_ANYWAY:
            sums[item.device] += item.num_bytes
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def _check_has_bytes(graph: Graph) -> None:
    """Reject a graph for which zero bytes would be a wrong answer."""
    statuses = Counter(value.status for node in graph.nodes for value in node.saved if value.kind == "tensor")
    if statuses and set(statuses) <= {"freed"}:
        raise GradInspectError(
            "Backward has already freed the saved tensors of this graph.",
            "Capture before backward runs (the default), or call it with retain_graph=True.",
        )
    if statuses["live"] and not graph.storages:
        raise GradInspectError("This capture has no byte sizes: it names no storage.", "Capture the program again.")


def _kind(uses: list[tuple[int, SavedValue]], origin: HeldAs, *, is_cast: bool) -> HeldAs:
    if is_cast:
        return "cast"
    if uses[0][1].status == "live":
        return origin
    statuses = {value.status for _, value in uses}
    if statuses == {"packed"}:
        return "packed"
    if statuses == {"checkpointed"} and origin != "input":
        return "checkpoint"
    return origin


def _held_storage(
    graph: Graph, number: int, uses: list[tuple[int, SavedValue]], held_as: HeldAs, cast_of: str | None
) -> HeldStorage:
    storage = graph.storages[number]
    largest = max((t for _, value in uses if (t := value.tensor) is not None and t.storage == number),
                  key=_num_bytes, default=None)  # fmt: skip
    counted_by, first = uses[0]
    return HeldStorage(
        storage=number,
        num_bytes=storage.num_bytes,
        held_as=held_as,
        counted_by=counted_by,
        savers=(counted_by,) if len(uses) == 1 else tuple(dict.fromkeys([node_id for node_id, _ in uses])),
        shown_bytes=_shown_bytes(number, storage.num_bytes, uses),
        info=None if largest is None else largest.info,
        name=storage.name,
        attribute=first.name,
        made_by=_maker(number, uses),
        cast_of=cast_of,
        device=storage.device,
    )


def _num_bytes(tensor: SavedTensor) -> int:
    return tensor.num_bytes


def _shown_bytes(number: int, num_bytes: int, uses: list[tuple[int, SavedValue]]) -> int:
    """Add up the bytes that different views use: all of them if one view does, or if a packed object has it."""
    views: dict[object, int] = {}
    for _, value in uses:
        tensor = value.tensor
        if tensor is None or tensor.storage != number or tensor.num_bytes >= num_bytes:
            return num_bytes
        views[tensor.storage_offset, tensor.info.shape, tensor.strides] = tensor.num_bytes
    return min(sum(views.values()), num_bytes)


def _maker(number: int, uses: list[tuple[int, SavedValue]]) -> int | None:
    """Find the node whose forward output this is; a node that saved its own output is the one."""
    for node_id, value in uses:
        if value.tensor is not None and value.tensor.storage == number:
            if value.tensor.made_by is not None:
                return value.tensor.made_by
            if value.origin == "output":
                return node_id
    return None


def _cast_of(graph: Graph, uses: list[tuple[int, SavedValue]]) -> str | None:
    """Name the tensor that a saved tensor is a cast of, as autocast makes; None if it is not a cast."""
    for _, value in uses:
        if value.tensor is None or value.tensor.made_by is None:
            continue
        maker = _behind_views(graph, value.tensor.made_by)
        if graph.nodes[maker].name == CAST:
            source = cast_source(graph, maker)
            if source is not None and source.info.dtype != value.tensor.info.dtype:
                return source.name
    return None


class CastSource(Record, frozen=True, kw_only=True):
    """The source of a cast."""

    name: str  # "fc.weight", or the node whose output it is
    info: TensorInfo
    node: int
    storage: int | None = None  # of a leaf


def cast_source(graph: Graph, cast: int) -> CastSource | None:
    """Find the tensor that a cast node copied."""
    edge = graph.nodes[cast].next_edges[0] if graph.nodes[cast].next_edges else None
    if edge is None:
        return None
    source = graph.nodes[edge.next_node]
    if source.leaf is not None:
        name = leaf_shown(graph, source.leaf) or "a leaf"
        return CastSource(name=name, info=source.leaf.info, node=edge.next_node, storage=source.leaf.storage)
    info = source.forward_outputs[edge.input_nr] if edge.input_nr < len(source.forward_outputs) else None
    return None if info is None else CastSource(name=f"#{edge.next_node}", info=info, node=edge.next_node)


def _behind_views(graph: Graph, node_id: int) -> int:
    """Follow views back to the node that allocated the memory."""
    while (node := graph.nodes[node_id]).name in VIEWS:
        edge = next(_edges(node), None)
        if edge is None:
            break
        node_id = edge
    return node_id


def _edges(node: Node) -> Iterator[int]:
    return (edge.next_node for edge in node.next_edges if edge is not None)
