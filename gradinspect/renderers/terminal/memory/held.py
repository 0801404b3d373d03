"""Memory held for backward, on a terminal: its kinds, then what keeps it, as a module tree or a table.

What comes in: results of `analyses.memory`. What goes out: lines of `rich.text.Text`, none wider than asked for.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.held import HeldAs, Memory
from gradinspect.analyses.memory.notes import MemoryNote
from gradinspect.analyses.memory.rows import OUTSIDE, MemoryRow
from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY
from gradinspect.analyses.memory.tree import ModuleBytes
from gradinspect.analyses.structure.call_names import OUTERMOST, class_beside, shown_path
from gradinspect.analyses.structure.copy_ranges import format_bytes_between
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_bytes, format_count, format_held, format_share

KIND_NAMES: dict[HeldAs, str] = {
    "activation": "activations", "input": "inputs", "output": "outputs", "cast": "casts to another dtype",
    "packed": "packed by hooks", "checkpoint": "inputs of checkpoints",
}  # fmt: skip
BYTES_CELLS = 10
SHARE_CELLS = 6
MIN_BAR_CELLS = 6
MAX_BAR_CELLS = 40
MIN_NAME = 24
MIN_LABEL = 12
MIN_LINE = 12
MAX_NOTES = 4  # of each kind


class MemoryPage(Page):
    """Writes the parts of the report at one width."""

    def head(self, memory: Memory, graph: Graph, moment: str = "") -> Iterator[Text]:
        """Yield where it was captured, the moment in backward if it is not its start, and the total split by kind."""
        yield from self.capture_lines(graph)
        if moment:
            yield from self.wrapped(moment, "bold")
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
        devices = memory.extra_bytes_by_device
        for device, num_bytes in devices.items() if len(devices) > 1 else ():
            yield self._kind_line(f"on {self.visible(device)}", num_bytes, extra)
        if memory.num_recomputed:
            yield Text(f"and {format_count(memory.num_recomputed, 'saved value')} that checkpoints recompute")

    def _kind_line(self, name: str, num_bytes: int, total: int) -> Text:
        width = max(map(len, KIND_NAMES.values()))
        text = f"  {name:<{width}}{format_bytes(num_bytes):>{BYTES_CELLS}}{format_share(num_bytes, total):>6}  "
        return Text(text).append(
            self._bar(num_bytes, total, min(max(self.width - len(text), 0), MAX_BAR_CELLS)), "cyan"
        )

    def modules(
        self, tree: Sequence[ModuleBytes], total: int, depth: int | None = None, model: str = OUTERMOST
    ) -> Iterator[Text]:
        """Yield one row per module, and below equal ones the odd one; own bytes add up to the total."""
        rows = [row for module in tree for row in self._module_rows(module, "", "", depth)]
        has_only = self.width >= 100
        heads = ("total", "own", "only here") if has_only else ("total", "own")
        names = self._with_ranges(rows, len(heads))
        columns = self._layout(names, len(heads))
        yield Text(columns.text("module", heads, "%"), "bold")
        for name, (_, module, below) in zip(names, rows, strict=True):
            figures = [module.total_bytes, module.own_bytes, *([module.only_bytes] if has_only else [])]
            yield self._row(columns, name, figures, module.total_bytes or module.own_bytes, total)
            if odd := module.odd_one:
                yield from self.odd_one(shown_path(odd.name, model), odd.times, below)
        yield Text(columns.text("total", (format_bytes(total),)), "bold")

    def own_code(self, tree: Sequence[ModuleBytes], total: int) -> Iterator[Text]:
        """Say how to see lines, where more than half is kept in no submodule: no name in the tree says what it is."""
        owners = [module for module in _all_modules(tree) if module.children or module.label == OUTSIDE]
        largest = max(owners, key=lambda module: module.own_bytes, default=None)
        if largest is None or 2 * largest.own_bytes <= total:
            return
        own = f"own: {format_bytes(largest.own_bytes)}"
        name = self.visible(f"{largest.label} {class_beside(largest.label, largest.class_name)}".rstrip())
        where = "outside of modules" if largest.label == OUTSIDE else f"in the code of {name} itself"
        yield from self.wrapped(f"{own} {where}; which lines: --by line")

    def _with_ranges(self, rows: Sequence["_ModuleRow"], num_figures: int) -> list[str]:
        """After the name of a folded row, write the least and the most of one module, if the bars still fit."""
        room = self.width - num_figures * (BYTES_CELLS + len(GAP)) - SHARE_CELLS - len(GAP) - MIN_BAR_CELLS
        ranged = [
            f"{name}{GAP}{format_bytes_between(*module.between)}" if module.is_ranged else name
            for name, module, _ in rows
        ]
        pairs = zip(rows, ranged, strict=True)
        return [text if cell_len(text) <= room else name for (name, *_), text in pairs]

    def _layout(self, names: Sequence[str], num_figures: int) -> "_Columns":
        """Choose the widths: figures stand beside the names, and bars have what is left, if it is enough."""
        longest = max(map(cell_len, names), default=0)
        figures = num_figures * (BYTES_CELLS + len(GAP)) + SHARE_CELLS
        has_bars = max(longest, MIN_NAME) + figures + len(GAP) + MIN_BAR_CELLS <= self.width
        name = min(max(longest, MIN_NAME), max(self.width - figures, 0))
        left = self.width - figures - name - len(GAP)
        return _Columns(self, name, min(left, MAX_BAR_CELLS) if has_bars else 0)

    def _row(self, columns: "_Columns", name: str, figures: Sequence[int], part: int, total: int) -> Text:
        share = format_share(part, total) if part else ""
        line = Text(columns.text(name, [format_bytes(n) if n else "" for n in figures], share))
        line.append(GAP).append(self._bar(part, total, columns.bar), "cyan")
        line.rstrip()
        return line

    def _module_rows(self, module: ModuleBytes, guide: str, below: str, depth: int | None) -> Iterator["_ModuleRow"]:
        times = self.times(module.copies)
        class_name = class_beside(module.label, module.class_name)
        words = (self.visible(module.label), self.visible(class_name), times)
        branch, last, line = ("├─ ", "└─ ", "│  ") if self.unicode else ("|- ", "`- ", "|  ")
        children = module.children if depth is None or depth > 0 else ()
        yield _ModuleRow(guide + GAP.join(filter(None, words)), module, below + (line if children else "   "))
        for index, child in enumerate(children):
            is_last = index == len(children) - 1
            inside = below + ("   " if is_last else line)
            yield from self._module_rows(
                child, below + (last if is_last else branch), inside, None if depth is None else depth - 1
            )

    def table(self, what: str, rows: Sequence[MemoryRow], rest: MemoryRow | None, total: int) -> Iterator[Text]:
        """Yield one row per group; their bytes add up to the total."""
        has_shared = any(row.shared_bytes for row in rows)
        heads = ("bytes", "also keeps") if has_shared else ("bytes",)
        num_cells = self.width - len(heads) * (BYTES_CELLS + len(GAP)) - SHARE_CELLS
        names = self._names(rows, num_cells)
        columns = self._layout(names, len(heads))
        yield Text(columns.text(what, heads, "%"), "bold")
        for row, name in zip((*rows, *([rest] if rest else [])), (*names, rest.label if rest else ""), strict=False):
            figures = (row.num_bytes, row.shared_bytes)[: len(heads)]
            yield self._row(columns, name, figures, row.num_bytes, total)
        yield Text(columns.text("total", (format_bytes(total),)), "bold")

    def _names(self, rows: Sequence[MemoryRow], num_cells: int) -> list[str]:
        """Write what each row is: its label, then its shape and line, if any, each in a column of its own."""
        cells = [[self.visible(part) for part in (row.label, *row.detail.split(GAP))] for row in rows]
        is_too_wide = sum(_widths(cells)) + len(GAP) * 2 > num_cells
        if is_too_wide:
            cells = [[label.removesuffix("Backward0"), *detail] for label, *detail in cells]
        widths = self._fitted(_widths(cells), num_cells)
        labels = self.apart([row[0] for row in cells], widths[0]) if cells else []
        fitted = ([label, *map(self.fit, row[1:], widths[1:])] for label, row in zip(labels, cells, strict=True))
        return [GAP.join(f"{t}{' ' * (w - cell_len(t))}" for t, w in zip(row, widths, strict=False)) for row in fitted]

    def _fitted(self, widths: list[int], num_cells: int) -> list[int]:
        """Narrow a line's file name, or drop the line, then narrow a label, and only then a shape."""
        for column, cells in ((2, MIN_LINE), (2, 0), (0, MIN_LABEL), (1, 0)):
            excess = sum(widths) + len(GAP) * (len(widths) - 1) - num_cells
            if column < len(widths) and excess > 0:
                widths[column] = max(widths[column] - excess, min(widths[column], cells))
                if column == 2 and not cells:
                    del widths[column]
        return widths

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

    def _bar(self, part: int, whole: int, cells: int) -> str:
        """Draw a share of the whole; anything above zero is visible."""
        if not whole or not part or cells <= 0:
            return ""
        return self.bar(max(round(8 * cells * part / whole), 1 if self.unicode else 8))


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column is; rows may have different numbers of them."""
    return [max(map(cell_len, column)) for column in zip_longest(*cells, fillvalue="")]


class _ModuleRow(NamedTuple):
    """A row of the tree."""

    name: str  # with the guides before it
    module: ModuleBytes
    below: str  # the guides on a line between it and the first row inside


class _Columns(NamedTuple):
    """How wide the name and the bar of a row are."""

    page: Page
    name: int
    bar: int

    def text(self, name: str, figures: Sequence[str], share: str = "") -> str:
        """Write a row without its bar."""
        text = self.page.fit(name.rstrip(), self.name)
        cells = "".join(f"{GAP}{figure:>{BYTES_CELLS}}" for figure in figures)
        return f"{text}{' ' * (self.name - cell_len(text))}{cells}{share:>{SHARE_CELLS}}".rstrip()


def _all_modules(tree: Sequence[ModuleBytes]) -> Iterator[ModuleBytes]:
    for module in tree:
        yield module
        yield from _all_modules(module.children)


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
