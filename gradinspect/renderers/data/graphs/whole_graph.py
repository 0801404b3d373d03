"""Files that hold all of a graph: a capture file, to be read again, and a table with one row per node."""

from typing import TYPE_CHECKING, Final, NamedTuple

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.graph import Edge, Graph, Node, source_of
from gradinspect.renderers.data.table import Table, render_table
from gradinspect.renderers.formats import FileContent
from gradinspect.storage import encode_graph
from gradinspect.units import format_tensor

if TYPE_CHECKING:
    from gradinspect.renderers.picture.plan.parts import DrawOptions


class NodeRow(NamedTuple):
    """A node, and the bytes of the storages that no earlier node saves, which add up to the total."""

    id: int
    graph: Graph
    node: Node
    held_bytes: int


def _module(row: NodeRow) -> str | None:
    return None if row.node.module is None else row.graph.modules[row.node.module].path


def _outputs(row: NodeRow) -> str:
    return "; ".join("None" if info is None else format_tensor(info) for info in row.node.forward_outputs)


def _edge(edge: Edge | None) -> str:
    """Write an edge: `7`, `7:2` (into its input 2), or `None`."""
    if edge is None:
        return "None"
    return f"{edge.next_node}:{edge.input_nr}" if edge.input_nr else str(edge.next_node)


NODES: Final[Table[NodeRow]] = Table({
    "id": lambda row: row.id,
    "name": lambda row: row.node.name,
    "kind": lambda row: row.node.kind,
    "outputs": _outputs,
    "module": _module,
    "source": lambda row: source_of(row.graph, row.node),
    "held_bytes": lambda row: row.held_bytes,
    "next_edges": lambda row: " ".join(map(_edge, row.node.next_edges)),
})  # fmt: skip


def render_nodes_csv(graph: Graph) -> str:
    """Write the nodes; edges are in order, separated by spaces."""
    held_bytes = held_bytes_by_node(graph)
    rows = (NodeRow(number, graph, node, held_bytes[number]) for number, node in enumerate(graph.nodes))
    return render_table(NODES, rows, "csv")


def nodes_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .csv file."""
    return FileContent(render_nodes_csv(graph).encode())


def capture_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .json file."""
    return FileContent(encode_graph(graph, compressed=False))


def packed_capture_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .json.gz file."""
    return FileContent(encode_graph(graph, compressed=True))
