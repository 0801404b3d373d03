"""When each node of a backward call ran, for how long, and which operators it called."""

from gradinspect.graph import Graph, Node, Record


class OpSlice(Record, frozen=True, kw_only=True):
    """One operator call, made by a node or by another operator."""

    name: str  # "aten::mm"
    start_s: float
    seconds: float


class NodeSlice(Record, frozen=True, kw_only=True):
    """One executed node. Times are relative to the first node."""

    node: int
    thread: int  # 0 for the first thread that ran a node
    start_s: float
    seconds: float
    ops: tuple[OpSlice, ...] = ()  # in order of start time


class Timeline(Record, frozen=True, kw_only=True):
    """The timeline of one backward call."""

    graph: Graph
    slices: tuple[NodeSlice, ...]  # in order of start time
    synchronized: tuple[str, ...] = ()  # devices that were waited for after each node, so that its time is theirs too
    unsynchronized: tuple[str, ...] = ()  # those that cannot be waited for: the times are those of the calls alone


def devices_of(node: Node) -> frozenset[str]:
    """Return the devices that a node's kernels run on, beside the CPU, whose calls return when they are done."""
    infos = [info for info in node.forward_outputs if info is not None]
    infos += [] if node.leaf is None else [node.leaf.info]
    return frozenset(info.device for info in infos) - {"cpu", "meta"}


def devices_of_all(graph: Graph) -> tuple[str, ...]:
    """Return those of all nodes."""
    return tuple(sorted(frozenset[str]().union(*map(devices_of, graph.nodes))))


def outermost_ops(piece: NodeSlice) -> tuple[OpSlice, ...]:
    """Return the operators that the node called directly."""
    outermost: list[OpSlice] = []
    for op in piece.ops:
        if not outermost or op.start_s >= outermost[-1].start_s + outermost[-1].seconds:
            outermost.append(op)
    return tuple(outermost)


def slowest_first(timeline: Timeline) -> tuple[NodeSlice, ...]:
    """Sort the nodes by duration, longest first."""
    return tuple(sorted(timeline.slices, key=lambda piece: (-piece.seconds, piece.node)))
