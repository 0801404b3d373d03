"""Memory held for backward, on a terminal: its kinds, then what keeps it, as a module tree or a table.

What comes in: results of `analyses.memory`. What goes out: lines of `rich.text.Text`, none wider than asked for.
"""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.held import HeldAs, Memory
from gradinspect.analyses.memory.notes import MemoryNote
from gradinspect.analyses.memory.rows import MemoryRow
from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY
from gradinspect.analyses.memory.tree import ModuleBytes
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_bytes, format_count, format_held

KIND_NAMES: dict[HeldAs, str] = {
    "activation": "activations", "input": "inputs", "output": "outputs", "cast": "casts to another dtype",
    "packed": "packed by hooks", "checkpoint": "inputs of checkpoints",
}  # fmt: skip
BYTES_CELLS = 10
BAR_CELLS = 16
MAX_DETAIL_BESIDE_BAR = 16
MAX_NOTES = 4  # of each kind


class MemoryPage(Page):
    """Writes the parts of the report at one width."""

    def head(self, memory: Memory, graph: Graph) -> Iterator[Text]:
        """Yield where it was captured, and the total split by kind."""
        yield from self.capture_lines(graph)
        for warning in graph.warnings:
            yield from self.wrapped(f"warning: {warning}", "yellow")
        extra = memory.extra_bytes
        num_extra = sum(held.held_as not in IN_MEMORY_ANYWAY for held in memory.storages)
        held = format_held(extra, memory.total_bytes - extra)
        yield from self.wrapped(f"{held}, {format_count(num_extra, 'storage')}")
        kinds = sorted(((memory.bytes_by_kind[kind], name) for kind, name in KIND_NAMES.items()), reverse=True)
        for num_bytes, name in kinds:
            if num_bytes:
                yield self._kind_line(name, num_bytes, extra)
        if memory.num_recomputed:
            yield Text(f"and {format_count(memory.num_recomputed, 'saved value')} that checkpoints recompute")

    def _kind_line(self, name: str, num_bytes: int, total: int) -> Text:
        width = max(map(len, KIND_NAMES.values()))
        text = f"  {name:<{width}}{format_bytes(num_bytes):>{BYTES_CELLS}}{_percent(num_bytes, total):>6}  "
        return Text(text).append(self._bar(num_bytes, total, max(self.width - len(text), 0)), "cyan")

    def modules(self, tree: Sequence[ModuleBytes], total: int, depth: int | None = None) -> Iterator[Text]:
        """Yield one row per module; own bytes add up to the total."""
        rows = [row for module in tree for row in self._module_rows(module, "", "", depth)]
        bar = BAR_CELLS if self.width >= 70 else 0
        has_only = self.width >= 100
        room = self.width - (2 + has_only) * (BYTES_CELLS + len(GAP)) - (bar + len(GAP) if bar else 0)
        heads = ("total", "own", "only here") if has_only else ("total", "own")
        yield Text(self._columns("module", heads, room), "bold")
        for name, module in rows:
            figures = [module.total_bytes, module.own_bytes, *([module.only_bytes] if has_only else [])]
            line = Text(self._columns(name, [format_bytes(n) if n else "" for n in figures], room))
            yield _ended(line.append(GAP).append(self._bar(module.total_bytes, total, bar), "cyan"))
        yield Text(self._columns("total", (format_bytes(total),), room), "bold")

    def _module_rows(
        self, module: ModuleBytes, guide: str, below: str, depth: int | None
    ) -> Iterator[tuple[str, ModuleBytes]]:
        times = f"{'×' if self.unicode else 'x'}{module.copies:,}" if module.copies > 1 else ""
        words = (self.visible(module.label), self.visible(module.class_name), times)
        yield guide + GAP.join(filter(None, words)), module
        if depth is not None and depth <= 0:
            return
        branch, last, line = ("├─ ", "└─ ", "│  ") if self.unicode else ("|- ", "`- ", "|  ")
        for index, child in enumerate(module.children):
            is_last = index == len(module.children) - 1
            inside = below + ("   " if is_last else line)
            yield from self._module_rows(
                child, below + (last if is_last else branch), inside, None if depth is None else depth - 1
            )

    def table(self, what: str, rows: Sequence[MemoryRow], rest: MemoryRow | None, total: int) -> Iterator[Text]:
        """Yield one row per group; their bytes add up to the total."""
        has_shared = any(row.shared_bytes for row in rows)
        details = max((cell_len(self.visible(row.detail)) for row in rows), default=0)
        bar = BAR_CELLS if self.width >= (70 if details < MAX_DETAIL_BESIDE_BAR or what != "storage" else 100) else 0
        room = self.width - (1 + has_shared) * (BYTES_CELLS + len(GAP)) - (bar + len(GAP) if bar else 0)
        heads = ("bytes", "also keeps") if has_shared else ("bytes",)
        yield Text(self._columns(what, heads, room), "bold")
        labels = max((cell_len(self.visible(row.label)) for row in rows), default=0)
        labels = max(min(labels, room - len(GAP) - details), room // 2)
        for row in (*rows, *([rest] if rest else [])):
            label = self.fit(row.label, labels if row.detail else room)
            name = f"{label}{' ' * (labels - cell_len(label))}{GAP}{row.detail}" if row.detail else label
            figures = (row.num_bytes, row.shared_bytes)[: len(heads)]
            line = Text(self._columns(name, [format_bytes(n) if n else "" for n in figures], room))
            yield _ended(line.append(GAP).append(self._bar(row.num_bytes, total, bar), "cyan"))
        yield Text(self._columns("total", (format_bytes(total),), room), "bold")

    def notes(self, notes: Sequence[MemoryNote]) -> Iterator[Text]:
        """Yield the notes, the largest of each kind."""
        told: dict[str, int] = {}
        for note in notes:
            told[note.kind] = told.get(note.kind, 0) + 1
            if told[note.kind] <= MAX_NOTES:
                yield from self.wrapped(f"{note.kind}: {note.text}")
        for kind, count in told.items():
            if count > MAX_NOTES:
                yield Text(f"{kind}: {count - MAX_NOTES:,} more, with --format json", "dim")

    def _columns(self, name: str, figures: Sequence[str], room: int) -> str:
        text = self.fit(name, room)
        cells = "".join(f"{GAP}{figure:>{BYTES_CELLS}}" for figure in figures)
        return f"{text}{' ' * (room - cell_len(text))}{cells}"

    def _bar(self, part: int, whole: int, cells: int) -> str:
        """Draw a share of the whole; anything above zero is visible."""
        if not whole or not part or cells <= 0:
            return ""
        return self.bar(max(round(8 * cells * part / whole), 1 if self.unicode else 8))


def _ended(line: Text) -> Text:
    line.rstrip()
    return line


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0
    return f"{share:.0f}%" if share >= 1 else "<1%"


def fitting_depth(tree: Sequence[ModuleBytes], max_rows: int) -> int:
    """Choose the depth at which an expanded tree has at most `max_rows` rows."""
    depth = 0
    while _num_rows(tree, depth + 1) <= max_rows and _num_rows(tree, depth + 1) > _num_rows(tree, depth):
        depth += 1
    return depth


def _num_rows(tree: Sequence[ModuleBytes], depth: int) -> int:
    if depth < 0:
        return 0
    return len(tree) + sum(_num_rows(module.children, depth - 1) for module in tree)
