"""Tables for spreadsheets and data frames: saved attributes, and nodes, one row each.

Values are written as they are. A guard against formulas (a quote before `=`) would change names such as `=1+1` for
every program that reads the file, so whoever opens it in a spreadsheet imports its columns as text. Lines end as
RFC 4180 says, which also makes Python quote a lone carriage return. A lone surrogate, which no encoding has, becomes
its escape.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from gradinspect.analyses.saved_rows import SavedRow
from gradinspect.analyses.saved_storages import first_savers
from gradinspect.graph import Edge, Graph, source_of
from gradinspect.units import format_tensor

NODE_COLUMNS = ("id", "name", "kind", "outputs", "module", "source", "saved_bytes", "next_edges")


def render_saved_csv(rows: Iterable[SavedRow]) -> str:
    """Write the saved-attribute table, a column for each field."""
    columns = SavedRow.__struct_fields__
    return render_csv(columns, ([getattr(row, column) for column in columns] for row in rows))


def render_nodes_csv(graph: Graph) -> str:
    """Write the nodes. The bytes are those of storages that no node before saves, so the column adds up to the total.

    Edges are written in their order: `7`, or `7:2` into its input 2, or `None`, with a space between.
    """
    saved_bytes = [0] * len(graph.nodes)
    for storage, node_id in first_savers(graph).items():
        saved_bytes[node_id] += graph.storages[storage].num_bytes
    return render_csv(
        NODE_COLUMNS, (_node_cells(graph, node_id, saved_bytes[node_id]) for node_id in range(len(graph.nodes)))
    )


def _node_cells(graph: Graph, node_id: int, saved_bytes: int) -> Sequence[object]:
    node = graph.nodes[node_id]
    return (
        node_id,
        node.name,
        node.kind,
        "; ".join("None" if info is None else format_tensor(info) for info in node.forward_outputs),
        None if node.module is None else graph.modules[node.module].path,
        source_of(graph, node),
        saved_bytes,
        " ".join(map(_edge_text, node.next_edges)),
    )


def _edge_text(edge: Edge | None) -> str:
    if edge is None:
        return "None"
    return f"{edge.next_node}:{edge.input_nr}" if edge.input_nr else str(edge.next_node)


def render_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a head and rows as RFC 4180 says."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue().encode(errors="backslashreplace").decode()
