"""The slowest nodes of a backward call, as lines of `rich.text.Text`."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.gradients.timeline import NodeSlice, Timeline, outermost_ops
from gradinspect.analyses.structure.call_names import node_shown
from gradinspect.analyses.summary import passed_over
from gradinspect.renderers.terminal.gradients.call import CELLS
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_count

BAR_CELLS = 16
HEAD = "node, and the operators it ran"


class TimelinePage(Page):
    """Writes the report of one timed backward call."""

    def lines(self, timeline: Timeline, rows: Sequence[NodeSlice], max_rows: int | None) -> Iterator[Text]:
        """Yield the head, then one row per node, with the operators it called."""
        total = sum(piece.seconds for piece in timeline.slices)
        yield from self.capture_lines(timeline.graph)
        yield Text(f"{format_count(len(timeline.slices), 'node')} ran in {total * 1e3:.2f} ms")
        yield from self._devices(timeline)
        yield from self.wrapped(" ".join(passed_over(timeline.graph)))
        yield Text()
        names = [self._name(timeline, piece) for piece in rows[:max_rows]]
        room = max(self.width - CELLS - BAR_CELLS - 2 * len(GAP), 20)
        room = min(room, max(map(cell_len, [*names, HEAD])))
        yield Text(f"{HEAD:{room}}{GAP}{'ms':>{CELLS}}", "bold")
        slowest = max((piece.seconds for piece in rows), default=0.0)
        for text, piece in zip(self.apart(names, room), rows, strict=False):
            line = Text(f"{text}{' ' * (room - cell_len(text))}{GAP}{_milliseconds(piece.seconds):>{CELLS}}{GAP}")
            share = piece.seconds / slowest if slowest else 0.0
            line.append(self.bar(round(8 * BAR_CELLS * share)), "cyan")
            line.rstrip()
            yield line
        if len(rows[:max_rows]) < len(rows):
            yield Text(f"{format_count(len(rows) - len(rows[:max_rows]), 'more node')}: --full", "dim")

    def _devices(self, timeline: Timeline) -> Iterator[Text]:
        """Say what was timed, if not everything ran on the CPU."""
        if timeline.synchronized:
            devices = ", ".join(timeline.synchronized)
            yield from self.wrapped(
                f"Each node was waited for on {devices}, so its time includes its kernels; an operator's time is that "
                "of its call."
            )
        if timeline.unsynchronized:
            devices = ", ".join(timeline.unsynchronized)
            yield from self.wrapped(f"{devices} cannot be waited for: times are those of calls, not of its kernels.")

    def _name(self, timeline: Timeline, piece: NodeSlice) -> str:
        """Name a node, its leaf, and each operator that it called once."""
        counts = Counter(op.name.removeprefix("aten::") for op in outermost_ops(piece))
        ops = ", ".join(f"{name} {self.times(count)}".rstrip() for name, count in counts.items())
        return f"{node_shown(timeline.graph, piece.node)}{GAP}{ops}".rstrip()


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}" if seconds < 1 else f"{seconds * 1e3:.0f}"
