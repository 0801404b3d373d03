"""Saved attributes for machines: every field as CSV and JSON, and a table in Markdown."""

from typing import Final

from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.renderers.data.markdown import code
from gradinspect.renderers.data.table import Table, all_fields
from gradinspect.units import format_bytes


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
        "origin": lambda row: " ".join(filter(None, (row.origin, code(row.origin_name or "")))),
        "module": lambda row: code(row.module_name or ""),
        "source": lambda row: code(row.source or ""),
    },
)
