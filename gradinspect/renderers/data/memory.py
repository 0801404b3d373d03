"""Held memory as JSON with all figures, and as CSV with the rows."""

from collections.abc import Iterator, Sequence

from gradinspect.analyses.memory.held import Memory
from gradinspect.analyses.memory.notes import MemoryNote
from gradinspect.analyses.memory.rows import MemoryRow
from gradinspect.analyses.memory.tree import ModuleBytes
from gradinspect.graph import Record
from gradinspect.renderers.data.csv import render_csv
from gradinspect.renderers.data.json import render_json

ROW_COLUMNS = ("label", "detail", "num_bytes", "shared_bytes", "only_bytes", "num_storages", "nodes")
MODULE_COLUMNS = ("path", "class_name", "depth", "own_bytes", "total_bytes", "only_bytes")


def render_memory_json(
    memory: Memory, captured_at: str, by: str, rows: Sequence[Record], notes: Sequence[MemoryNote]
) -> str:
    """Write the totals, kinds, rows of one grouping, notes, and each storage."""
    return render_json({
        "captured_at": captured_at,
        "total_bytes": memory.total_bytes,
        "extra_bytes": memory.extra_bytes,
        "bytes_by_kind": memory.bytes_by_kind,
        "extra_bytes_by_device": memory.extra_bytes_by_device,
        "num_recomputed": memory.num_recomputed,
        "by": by,
        "rows": rows,
        "notes": notes,
        "storages": memory.storages,
    })  # fmt: skip


def render_rows_csv(rows: Sequence[MemoryRow]) -> str:
    """Write one line per group; node ids are separated by spaces."""
    plain = ROW_COLUMNS[:-1]
    lines = ([*(getattr(row, name) for name in plain), " ".join(map(str, row.nodes))] for row in rows)
    return render_csv(ROW_COLUMNS, lines)


def render_modules_csv(tree: Sequence[ModuleBytes]) -> str:
    """Write one line per module, outermost first."""
    return render_csv(MODULE_COLUMNS, _module_lines(tree, 0))


def _module_lines(tree: Sequence[ModuleBytes], depth: int) -> Iterator[list[object]]:
    for module in tree:
        name = module.path or module.label
        yield [name, module.class_name, depth, module.own_bytes, module.total_bytes, module.only_bytes]
        yield from _module_lines(module.children, depth + 1)
