"""The slowest nodes of a backward call, as lines of `rich.text.Text`."""

from collections import Counter
from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.gradients.timeline import NodeSlice, Timeline, outermost_ops, slowest_first
from gradinspect.renderers.terminal.gradients import BAR_CELLS, CELLS
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_count


class TimelinePage(Page):
    """Writes the report of one timed backward call."""

    def lines(self, timeline: Timeline, max_rows: int | None) -> Iterator[Text]:
        """Yield the head, then one row per node, slowest first, with the operators it called."""
        total = sum(piece.seconds for piece in timeline.slices)
        waits = ", synchronizing with the device after each" if timeline.is_synchronized else ""
        yield from self.capture_lines(timeline.graph)
        yield Text(f"{format_count(len(timeline.slices), 'node')} ran in {total * 1e3:.2f} ms{waits}")
        yield Text()
        room = max(self.width - CELLS - BAR_CELLS - 2 * len(GAP), 20)
        yield Text(f"{'node, and the operators it ran':{room}}{GAP}{'ms':>{CELLS}}", "bold")
        rows = slowest_first(timeline)
        for piece in rows[:max_rows]:
            text = self.fit(_name(timeline, piece), room)
            line = Text(f"{text}{' ' * (room - cell_len(text))}{GAP}{_milliseconds(piece.seconds):>{CELLS}}{GAP}")
            share = piece.seconds / rows[0].seconds if rows[0].seconds else 0.0
            line.append(self.bar(round(8 * BAR_CELLS * share)), "cyan")
            line.rstrip()
            yield line
        if len(rows[:max_rows]) < len(rows):
            yield Text(f"{format_count(len(rows) - len(rows[:max_rows]), 'more node')}: --full", "dim")


def _name(timeline: Timeline, piece: NodeSlice) -> str:
    """Name a node, its leaf, and each operator that it called once."""
    node = timeline.graph.nodes[piece.node]
    leaf = f" {node.leaf.name}" if node.leaf is not None and node.leaf.name else ""
    counts = Counter(op.name.removeprefix("aten::") for op in outermost_ops(piece))
    ops = ", ".join(name if count == 1 else f"{name} x{count}" for name, count in counts.items())
    return f"#{piece.node} {node.name}{leaf}{GAP}{ops}".rstrip()


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}" if seconds < 1 else f"{seconds * 1e3:.0f}"
