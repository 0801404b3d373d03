"""The figures of a graph, and what its nodes save, for machines."""

from typing import Final

from gradinspect.analyses.memory.compiled import eager_words
from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.analyses.summary import Summary
from gradinspect.renderers.data.markdown import code, render_markdown
from gradinspect.renderers.data.table import Columns, Table, all_fields, fields
from gradinspect.renderers.terminal.summary import PLURALS, largest_first
from gradinspect.units import format_bytes

SUMMARY: Final[Columns[Summary]] = fields(*(name for name in Summary.__struct_fields__ if name != "warnings"))


def _status(row: SavedRow) -> str:
    return code(f"{row.status}: {row.status_detail}") if row.status_detail else row.status or ""


SAVED: Final[Table[SavedRow]] = Table(
    all_fields(SavedRow),
    markdown={
        "node": lambda row: str(row.node),
        "class": lambda row: code(row.node_name),
        "attribute": lambda row: code(row.attribute),
        "value": lambda row: code(row.value),
        "bytes": lambda row: "" if row.num_bytes is None else format_bytes(row.num_bytes),
        "shared with": lambda row: "" if row.shared_with is None else str(row.shared_with),
        "status": _status,
        "origin": lambda row: " ".join(
            filter(None, (row.origin, code(row.origin_name or ""), eager_words(row.kept_by_eager)))
        ),
        "module": lambda row: code(row.module_name or ""),
        "source": lambda row: code(row.source or ""),
    },
)


def render_summary_markdown(summary: Summary) -> str:
    """Write the figures as Markdown, to paste into a report."""
    figures = [
        (name.replace("_", " "), f"{getattr(summary, name):,}")
        for name in ("roots", "nodes", "edges", "none_edges", "leaves", "max_depth")
    ]
    figures.append(("held", format_bytes(summary.held_bytes)))
    figures += [(f"saved: {PLURALS[origin]}", format_bytes(num_bytes)) for origin, num_bytes in largest_first(summary)]
    classes = [(code(name), f"{count:,}") for name, count in summary.classes.items()]
    head = [code(summary.captured_at), *filter(None, [summary.other_calls])]
    sections = [*head, render_markdown(("figure", "value"), figures), render_markdown(("class", "nodes"), classes)]
    sections += [f"Warning: {code(warning)}" for warning in summary.warnings]
    return "\n\n".join(section.rstrip("\n") for section in sections) + "\n"
