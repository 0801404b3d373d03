r"""Tables for spreadsheets and data frames: saved attributes, and nodes, one row each.

NOTE [Cells for spreadsheets]
A spreadsheet evaluates a cell that begins with `=`, `+`, `-` or `@`, and a terminal obeys control characters. Text
cells are written so that neither can happen, and so that the original text can be recovered:

- a backslash is doubled, and unprintable characters become their Python escape: `\n`, `\x1b`, `\u202e`, `\udcff`;
- a cell that would then begin with one of `= + - @`, their full-width forms or a quote `'` gets a leading quote, which
  spreadsheets read as "this is text".

To decode a cell, drop the leading quote, if any, then replace the escapes. Numbers stay numbers, including -1. Line
endings follow RFC 4180.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.graph import Edge, Graph, source_of
from gradinspect.renderers.formats import FileContent
from gradinspect.units import escape_control, format_tensor

if TYPE_CHECKING:
    from gradinspect.renderers.picture.plan.parts import DrawOptions

FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")  # including full-width forms
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
NODE_COLUMNS = ("id", "name", "kind", "outputs", "module", "source", "held_bytes", "next_edges")


def render_saved_csv(rows: Iterable[SavedRow]) -> str:
    """Write the saved-attribute table, one column per field."""
    columns = SavedRow.__struct_fields__
    return render_csv(columns, ([getattr(row, column) for column in columns] for row in rows))


def render_nodes_csv(graph: Graph) -> str:
    """Write the nodes. The bytes are those of storages that no earlier node saves, so the column adds up to the total.

    Edges are written in order, separated by spaces: `7`, `7:2` (into its input 2), or `None`.
    """
    held_bytes = held_bytes_by_node(graph)
    return render_csv(
        NODE_COLUMNS, (_node_cells(graph, node_id, held_bytes[node_id]) for node_id in range(len(graph.nodes)))
    )


def _node_cells(graph: Graph, node_id: int, held_bytes: int) -> Sequence[object]:
    node = graph.nodes[node_id]
    return (
        node_id,
        node.name,
        node.kind,
        "; ".join("None" if info is None else format_tensor(info) for info in node.forward_outputs),
        None if node.module is None else graph.modules[node.module].path,
        source_of(graph, node),
        held_bytes,
        " ".join(map(_edge_text, node.next_edges)),
    )


def _edge_text(edge: Edge | None) -> str:
    if edge is None:
        return "None"
    return f"{edge.next_node}:{edge.input_nr}" if edge.input_nr else str(edge.next_node)


def render_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a header and rows in the format of RFC 4180."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: object) -> object:
    """Write one cell: NOTE [Cells for spreadsheets]."""
    if not isinstance(value, str):
        return value
    text = escape_control(value.replace("\\", r"\\"))
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(text) else text


def nodes_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .csv file."""
    return FileContent(render_nodes_csv(graph).encode())
