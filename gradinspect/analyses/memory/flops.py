"""Floating point operations by source line and operator, as far as torch's formulas know them.

What comes in: a `Graph`, whose nodes have counts of their forward op and of their backward. What goes out: rows that
add up to the totals, and which classes have no count.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from gradinspect.analyses.memory.held import VIEWS
from gradinspect.analyses.selection.rows import Fields
from gradinspect.graph import Graph, Record, source_of


class FlopRow(Record, frozen=True, kw_only=True):
    """The nodes of one class that one line has made."""

    label: str  # the class
    line: str = ""
    forward: int
    backward: int
    nodes: tuple[int, ...]

    @property
    def total(self) -> int:
        """Of the forward ops and the backward."""
        return self.forward + self.backward


class CountedFlops(Record, frozen=True, kw_only=True):
    """All rows, and what has no count."""

    rows: tuple[FlopRow, ...]  # largest first
    unknown: dict[str, int]  # class -> number of nodes, most frequent first


FLOP_FIELDS: Final[Fields[FlopRow]] = {
    "flops": lambda row: (row.total,),
    "forward": lambda row: (row.forward,),
    "backward": lambda row: (row.backward,),
    "name": lambda row: (row.label,),
    "line": lambda row: (row.line,),
}


def count_flops(graph: Graph, nodes: Collection[int] | None = None) -> CountedFlops:
    """Add up the counts of all nodes, or of some."""
    groups: dict[tuple[str, str], list[int]] = {}
    unknown: Counter[str] = Counter()
    for node_id, node in enumerate(graph.nodes):
        if nodes is not None and node_id not in nodes:
            continue
        if node.flops is not None or node.backward_flops is not None:
            groups.setdefault((node.name, source_of(graph, node) or ""), []).append(node_id)
        elif node.kind != "accumulate_grad" and node.name not in VIEWS:  # which compute nothing
            unknown[node.name] += 1
    rows = [
        FlopRow(
            label=name,
            line=line,
            forward=sum(graph.nodes[node_id].flops or 0 for node_id in ids),
            backward=sum(graph.nodes[node_id].backward_flops or 0 for node_id in ids),
            nodes=tuple(ids),
        )
        for (name, line), ids in groups.items()
    ]
    return CountedFlops(rows=tuple(sorted(rows, key=lambda row: -row.total)), unknown=dict(unknown.most_common()))


def left_out(rows: Sequence[FlopRow], top: int | None) -> tuple[Sequence[FlopRow], FlopRow | None]:
    """Keep the first rows; merge the others into one, so that the sum stays."""
    if top is None or len(rows) <= top:
        return rows, None
    rest = rows[top:]
    return rows[:top], FlopRow(
        label=f"{len(rest):,} more",
        forward=sum(row.forward for row in rest),
        backward=sum(row.backward for row in rest),
        nodes=tuple(node_id for row in rest for node_id in row.nodes),
    )
