"""When each node of a backward call ran, how long, and which operators it ran."""

from gradinspect.graph import Graph, Record


class OpSlice(Record, frozen=True, kw_only=True):
    """One operator that a node called, or that another operator called."""

    name: str  # "aten::mm"
    start_s: float
    seconds: float


class NodeSlice(Record, frozen=True, kw_only=True):
    """One node as it ran. Times begin with the first node."""

    node: int
    thread: int  # 0 for the first that ran a node
    start_s: float
    seconds: float
    ops: tuple[OpSlice, ...] = ()  # in the order of their start


class Timeline(Record, frozen=True, kw_only=True):
    """One backward call in time."""

    graph: Graph
    slices: tuple[NodeSlice, ...]  # in the order of their start
    is_synchronized: bool = False  # a device was waited for after each node


def outermost_ops(piece: NodeSlice) -> tuple[OpSlice, ...]:
    """Return the operators that the node itself called."""
    outermost: list[OpSlice] = []
    for op in piece.ops:
        if not outermost or op.start_s >= outermost[-1].start_s + outermost[-1].seconds:
            outermost.append(op)
    return tuple(outermost)


def slowest_first(timeline: Timeline) -> tuple[NodeSlice, ...]:
    """Sort the nodes by their time."""
    return tuple(sorted(timeline.slices, key=lambda piece: (-piece.seconds, piece.node)))
