"""Memory for machines: what a graph holds, by group and module, its operations, and how it grows."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradinspect.analyses.memory.budgets import BudgetRow
from gradinspect.analyses.memory.flops import FlopRow
from gradinspect.analyses.memory.growth import Growth, Iteration
from gradinspect.analyses.memory.held import Memory
from gradinspect.analyses.memory.notes import MemoryNote
from gradinspect.analyses.memory.rows import MemoryRow
from gradinspect.analyses.memory.tree import ModuleBytes
from gradinspect.graph import Record
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.data.table import Columns, Table, all_fields, fields, figures

GROUPS: Final[Table[MemoryRow]] = Table({
    **fields("label", "detail", "num_bytes", "shared_bytes", "only_bytes", "num_storages"),
    "nodes": lambda row: " ".join(map(str, row.nodes)),
})  # fmt: skip
MODULES: Final[Table[tuple[int, ModuleBytes]]] = Table({  # with the depth of each
    "path": lambda row: row[1].path or row[1].label,
    "class_name": lambda row: row[1].class_name,
    "depth": lambda row: row[0],
    "own_bytes": lambda row: row[1].own_bytes,
    "total_bytes": lambda row: row[1].total_bytes,
    "only_bytes": lambda row: row[1].only_bytes,
})  # fmt: skip
FLOPS: Final[Table[FlopRow]] = Table({
    "class": lambda row: row.label,
    "line": lambda row: row.line,
    "forward_flops": lambda row: row.forward,
    "backward_flops": lambda row: row.backward,
    "nodes": lambda row: " ".join(map(str, row.nodes)),
})  # fmt: skip
BUDGETS: Final[Table[BudgetRow]] = Table(all_fields(BudgetRow))
ITERATIONS: Final[Table[Iteration]] = Table(all_fields(Iteration))
GROWTH: Final[Columns[Growth]] = fields(
    "source", "kind", "grows", "nodes_per_iteration", "bytes_per_iteration", "iterations", "holders"
)
TOTALS: Final[Columns[Memory]] = fields(
    "total_bytes", "extra_bytes", "bytes_by_kind", "extra_bytes_by_device", "num_recomputed"
)


def with_depths(tree: Sequence[ModuleBytes], depth: int = 0) -> Iterator[tuple[int, ModuleBytes]]:
    """List the modules of a tree, outermost first."""
    for module in tree:
        yield depth, module
        yield from with_depths(module.children, depth + 1)


def render_memory_json(
    memory: Memory, captured_at: str, by: str, rows: Sequence[Record], notes: Sequence[MemoryNote]
) -> str:
    """Write the totals, kinds, rows of one grouping, notes, and each storage."""
    rest = {"by": by, "rows": rows, "notes": notes, "storages": memory.storages}
    return render_json({"captured_at": captured_at, **figures(memory, TOTALS), **rest})
