"""Held memory grouped by operator, source line or storage. Each storage counts in one row, so rows add up."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from gradinspect.analyses.memory.held import HeldStorage, Memory
from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY
from gradinspect.analyses.selection.rows import Fields
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.graph import Graph, Record, source_of
from gradinspect.units import format_tensor

OUTSIDE = "(outside modules)"
NO_LINE = "(no line recorded)"


class MemoryRow(Record, frozen=True, kw_only=True):
    """One group of nodes, or one storage. Bytes are of storages beyond parameters and buffers."""

    label: str
    detail: str = ""
    num_bytes: int  # counted here and in no other row
    shared_bytes: int = 0  # also kept here, but counted in another row
    only_bytes: int = 0  # kept by nothing else: freed without this row
    num_storages: int = 0  # counted here
    nodes: tuple[int, ...] = ()  # nodes that keep any of it


MEMORY_FIELDS: Final[Fields[MemoryRow]] = {
    "bytes": lambda row: (row.num_bytes,),
    "name": lambda row: (row.label,),
    "shared": lambda row: (row.shared_bytes,),
}


def rows_by_operator(graph: Graph, memory: Memory) -> tuple[MemoryRow, ...]:
    """Group by node class, largest first."""
    return _grouped(memory, lambda node_id: graph.nodes[node_id].name, lambda key, _: (str(key), ""))


def rows_by_line(graph: Graph, memory: Memory) -> tuple[MemoryRow, ...]:
    """Group by the line of the user's program that made the node, largest first."""

    def names(key: Hashable, node_id: int) -> tuple[str, str]:
        frame = graph.nodes[node_id].frame
        return (NO_LINE, "") if frame is None else (str(key), graph.frames[frame].code)

    return _grouped(memory, lambda node_id: source_of(graph, graph.nodes[node_id]), names)


class LineBytes(Record, frozen=True, kw_only=True):
    """What the nodes of one source line keep."""

    file: str
    line: int
    code: str
    num_bytes: int
    shared_bytes: int


def lines_of(graph: Graph, rows: Sequence[MemoryRow]) -> tuple[LineBytes, ...]:
    """Convert rows by line to lines of files, without rows that have no line."""
    frames = [(row, graph.nodes[row.nodes[0]].frame) for row in rows if row.nodes]
    return tuple(
        LineBytes(
            file=graph.frames[frame].file,
            line=graph.frames[frame].line,
            code=graph.frames[frame].code,
            num_bytes=row.num_bytes,
            shared_bytes=row.shared_bytes,
        )
        for row, frame in frames
        if frame is not None
    )


def rows_by_storage(graph: Graph, memory: Memory) -> tuple[MemoryRow, ...]:
    """List each storage, largest first."""
    rows = [
        MemoryRow(
            label=_storage_label(graph, held),
            detail=_storage_detail(graph, held),
            num_bytes=held.num_bytes,
            only_bytes=held.num_bytes,
            num_storages=1,
            nodes=held.savers,
        )
        for held in extra_storages(memory)
    ]
    return tuple(sorted(rows, key=lambda row: -row.num_bytes))


def extra_storages(memory: Memory) -> list[HeldStorage]:
    """Return what is held beyond parameters and buffers."""
    return [held for held in memory.storages if held.held_as not in IN_MEMORY_ANYWAY]


def _storage_label(graph: Graph, held: HeldStorage) -> str:
    what = {"cast": f"cast of {held.cast_of}", "packed": "packed", "checkpoint": "checkpoint input"}.get(held.held_as)
    if held.name is not None:
        return f"{held.held_as} {shown_path(held.name, graph.model_name)}"
    if what is None and held.made_by is not None:
        return f"{held.held_as} of #{held.made_by} {graph.nodes[held.made_by].name}"
    return what or held.held_as


def _storage_detail(graph: Graph, held: HeldStorage) -> str:
    line = (source_of(graph, graph.nodes[held.counted_by]) or "").rpartition("/")[2]
    return "  ".join(filter(None, ("" if held.info is None else format_tensor(held.info), line)))


def _grouped(
    memory: Memory, key_of: Callable[[int], Hashable], names_of: Callable[[Hashable, int], tuple[str, str]]
) -> tuple[MemoryRow, ...]:
    groups: dict[Hashable, _Group] = {}
    for held in extra_storages(memory):
        keys = dict.fromkeys(map(key_of, held.savers))
        for saver in held.savers:
            groups.setdefault(key_of(saver), _Group(saver)).nodes[saver] = None
        for key in keys:
            groups[key].add(held, is_counted=key == key_of(held.counted_by), is_alone=len(keys) == 1)
    rows = [group.row(*names_of(key, group.first_node)) for key, group in groups.items()]
    return tuple(sorted(rows, key=lambda row: -row.num_bytes))


class _Group:
    def __init__(self, first_node: int) -> None:
        self.first_node = first_node
        self.nodes: dict[int, None] = {}
        self.num_bytes = self.shared_bytes = self.only_bytes = self.num_storages = 0

    def add(self, held: HeldStorage, *, is_counted: bool, is_alone: bool) -> None:
        if is_counted:
            self.num_bytes += held.num_bytes
            self.num_storages += 1
        else:
            self.shared_bytes += held.num_bytes
        if is_alone:
            self.only_bytes += held.num_bytes

    def row(self, label: str, detail: str) -> MemoryRow:
        return MemoryRow(
            label=label,
            detail=detail,
            num_bytes=self.num_bytes,
            shared_bytes=self.shared_bytes,
            only_bytes=self.only_bytes,
            num_storages=self.num_storages,
            nodes=tuple(self.nodes),
        )


def left_out(rows: Sequence[MemoryRow], top: int | None) -> tuple[Sequence[MemoryRow], MemoryRow | None]:
    """Keep the largest rows; merge the others into one row, so that the sum stays."""
    if top is None or len(rows) <= top:
        return rows, None
    rest = rows[top:]
    return rows[:top], MemoryRow(
        label=f"{len(rest):,} more",
        num_bytes=sum(row.num_bytes for row in rest),
        num_storages=sum(row.num_storages for row in rest),
    )
