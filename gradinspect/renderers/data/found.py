"""Nodes that were found, as JSON, within a number of characters if there is one.

NOTE [Within a budget]
What reads this pays for each character. So the figures of the graph come first, then as many nodes as fit, those that
hold the most bytes first, without fields that say nothing; how many were left out is said.
"""

from collections.abc import Sequence

from gradinspect.analyses.memory.compiled import closed_notes
from gradinspect.analyses.summary import summarize
from gradinspect.graph import FoundNode, Graph
from gradinspect.renderers.data.json import json_text, plain, render_json
from gradinspect.units import brief

MAX_TEXT = 60  # characters of a name, within a budget
MAX_NOTE = 120  # of a note


def render_found_json(graph: Graph, rows: Sequence[FoundNode], condition: str, budget: int | None = None) -> str:
    """Write the nodes that were found.

    Args:
        graph: The graph.
        rows: Its nodes that were found.
        condition: What they were found by.
        budget: The most characters, at least 500: NOTE [Within a budget]. None: everything.
    """
    figures = summarize(graph)
    head: dict[str, object] = {
        "captured_at": figures.captured_at,
        "condition": condition,
        "graph_nodes": figures.nodes,
        "graph_held_bytes": figures.held_bytes,
        "found": len(rows),
        "found_held_bytes": sum(row.held_bytes for row in rows),
    }
    notes = closed_notes(graph)
    if notes:
        head["notes"] = list(notes)
    if budget is None:
        return render_json({**head, "nodes": list(rows)})
    for key in ("captured_at", "condition"):
        head[key] = brief(str(head[key]), MAX_TEXT)
    if notes:
        head["notes"] = [brief(note, MAX_NOTE) for note in notes[:1]]
    return _within(head, rows, budget)


def _within(head: dict[str, object], rows: Sequence[FoundNode], budget: int) -> str:
    ordered = sorted(rows, key=lambda row: (-row.held_bytes, row.id))
    nodes: list[str] = []
    used = len(_text(head, [], len(rows)))
    for row in ordered:
        text = json_text(_without_empty(row), separators=(",", ":"))
        used += len(text) + 1
        if used > budget:
            break
        nodes.append(text)
    return _text(head, nodes, len(rows) - len(nodes))


def _text(head: dict[str, object], nodes: Sequence[str], left_out: int) -> str:
    start = json_text({**head, "left_out": left_out}, separators=(",", ":"))
    return f'{start[:-1]},"nodes":[{",".join(nodes)}]}}\n'


def _without_empty(row: FoundNode) -> dict[str, object]:
    """Keep the fields that say something, with long names cut."""
    fields = {name: plain(getattr(row, name)) for name in row.__struct_fields__}
    kept = {name: value for name, value in fields.items() if value not in (None, [], ["live"])}
    return {name: brief(value, MAX_TEXT) if isinstance(value, str) else value for name, value in kept.items()}
