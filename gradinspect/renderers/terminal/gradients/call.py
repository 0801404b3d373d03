"""Gradients of one backward call, by module, parameter and node, with findings.

What comes in: a `Graph` with gradients and the rows made of it. What goes out: lines of `rich.text.Text`, none wider
than asked for.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.gradients.folded import FoldedRow
from gradinspect.analyses.gradients.observed import (
    FlowRow,
    GradientNote,
    ParameterRow,
    fall_of,
    is_any_unmeasured,
    known,
    norm_of_all,
)
from gradinspect.analyses.gradients.timeline import devices_of
from gradinspect.analyses.structure.call_names import short_name
from gradinspect.analyses.structure.name_folding import format_times
from gradinspect.graph import GradientStats, Graph, Measured, NodeGradients
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_count

CELLS = 8
RANGE_CELLS = 12
MIN_BAR_CELLS = 16
MAX_BAR_CELLS = 40
MIN_NAME = 12  # cells left for names beside a bar
MIN_HEAD = 21  # cells of the longest heading
MIN_CHANGE = 1.5  # a smaller factor is no change
UPDATE = "update/weight"
UNKNOWN = "unknown"  # a gradient that was not measured
MAX_NAMES = 4


class GradientsPage(Page):
    """Writes the parts of the report at one width."""

    def notes(self, found: Sequence[GradientNote]) -> Iterator[Text]:
        """Yield each note and the parameters that it concerns."""
        for note in found:
            yield from self.wrapped(f"{note.kind}: {note.text}", "bold")
            if note.parameters:
                names = ", ".join(note.parameters[:MAX_NAMES])
                more = len(note.parameters) - MAX_NAMES
                rest = f" and {more:,} more" if more > 0 else ""
                label = {"killed": "no gradient reaches: ", "non-finite": "reaches: "}.get(note.kind, "")
                yield from self.wrapped(f"{label}{names}{rest}", indent=GAP)

    def unmeasured(self, sentences: Sequence[str]) -> Iterator[Text]:
        """Yield what was not measured, which is no finding."""
        for sentence in sentences:
            yield from self.wrapped(sentence)

    def fall(self, rows: Sequence[FlowRow], model: str) -> Iterator[Text]:
        """Say in words how the gradient changes from the loss to the inputs."""
        fall = fall_of(rows)
        if fall is None:
            return
        ends = [f"{short_name(module, None, model)} ({number(norm)})" for module, norm in (
            (fall.closest.path, fall.closest.stats.norm), (fall.farthest.path, fall.farthest.stats.norm)
        )]  # fmt: skip
        if max(fall.factor, 1 / fall.factor) < MIN_CHANGE:
            yield from self.wrapped(f"The gradient keeps its size from {ends[0]} to {ends[1]}.")
        else:
            verb = "falls" if fall.factor > 1 else "rises"
            yield from self.wrapped(f"The gradient {verb} {_times(fall.factor)} from {ends[0]} to {ends[1]}.")

    def flow(self, rows: Sequence[FlowRow], max_rows: int | None = None, *, model: str = "model",
             is_part: bool = False) -> Iterator[Text]:  # fmt: skip
        """Yield one row per module call, from the loss to the inputs, with bars on a logarithmic scale.

        Args:
            rows: All rows.
            max_rows: How many of them are shown.
            model: What to call the outermost module.
            is_part: Whether rows are chosen or sorted, so that none is inside the one above.
        """
        shown = rows[:max_rows]
        names = [f"{short_name(row.path, None, model)}{_call(row)}{GAP}{row.class_name}" for row in shown]
        if not is_part:
            names = [f"{GAP * row.depth}{name}{_call(row)}{GAP}{row.class_name}"
                     for row, name in zip(shown, _names_inside(shown, model), strict=True)]  # fmt: skip
        table = self._table(names, ("norm", "max", "zeros"), [row.stats.norm for row in shown])
        yield table.head("gradient at output of")
        for name, row in zip(names, shown, strict=True):
            yield table.row(
                name, (number(row.stats.norm), number(row.stats.max_abs), _share(row.stats)), row.stats.norm
            )
        if len(shown) < len(rows):
            yield Text(f"{format_count(len(rows) - len(shown), 'more module call')}: --full", "dim")

    def parameters(self, rows: Sequence[ParameterRow], max_rows: int | None) -> Iterator[Text]:
        """Yield one row per leaf: the gradient that was accumulated into it."""
        has_updates = any(row.update_norm is not None for row in rows)
        shown = rows[:max_rows]
        names = [row.name + (f" (from {row.num_added:,})" if row.num_added > 1 else "") for row in shown]
        heads = ("norm", "max", "zeros", "/weight", *([UPDATE] if has_updates else []))
        table = self._table(names, heads, [row.stats.norm for row in shown if row.stats is not None])
        yield table.head("gradient of")
        for name, row in zip(names, shown, strict=True):
            if row.stats is None:
                figures = ["none" if row.is_missing else UNKNOWN, "", "", ""]
            else:
                figures = [number(row.stats.norm), number(row.stats.max_abs), _share(row.stats), number(row.ratio)]
            figures += [number(row.update_ratio)] if has_updates else []
            yield table.row(name, figures, 0.0 if row.stats is None else row.stats.norm)
        if len(shown) < len(rows):
            yield Text(f"{format_count(len(rows) - len(shown), 'more leaf', 'more leaves')}: --full", "dim")

    def folded(self, rows: Sequence[FoldedRow], max_rows: int | None) -> Iterator[Text]:
        """Yield one row for the parameters of equal blocks, with the ranges of their figures, and the odd one out."""
        shown = rows[:max_rows]
        has_updates = any(row.update_norm is not None for folded in shown for row in folded.rows)
        names = [f"{folded.name}{_copies(folded, 'x' if not self.unicode else '×')}" for folded in shown]
        table = FigureTable(self, names, ("norm", "/weight", *([UPDATE] if has_updates else [])), None, RANGE_CELLS)
        yield table.head("gradient of")
        for name, folded in zip(names, shown, strict=True):
            first = folded.rows[0]
            ratios = [_range(row.ratio for row in folded.rows)]
            ratios += [_range(row.update_ratio for row in folded.rows)] if has_updates else []
            norm = "none" if first.is_missing else UNKNOWN if first.stats is None else _range(folded.norms)
            yield table.row(name, (norm, *ratios))
            yield from self._odd_one(folded)
        left = sum(len(folded.rows) for folded in rows[len(shown) :])
        yield from self.wrapped(
            f"{format_count(left, 'more leaf', 'more leaves')}: --full" if left else "Each one: --full", "dim"
        )

    def _odd_one(self, folded: FoldedRow) -> Iterator[Text]:
        odd = folded.odd_one
        if odd is not None:
            row, times = odd
            yield from self.wrapped(f"{row.name}: {format_times(times)} the others", "yellow", indent=GAP)

    def nodes(self, graph: Graph, rows: Sequence[NodeGradients], max_rows: int | None) -> Iterator[Text]:
        """Yield one row per node."""
        shown = rows[:max_rows]
        names = [_node_name(graph, ran) for ran in shown]
        table = self._table(names, ("norm in", "out", "zeros", "ms"), None)
        yield table.head("node")
        for name, ran in zip(names, shown, strict=True):
            zeros = next((_share(stats) for stats in known(ran.outgoing)), "")
            seconds = "" if ran.seconds is None else f"{ran.seconds * 1e3:.2f}"
            yield table.row(name, (_norm(ran.incoming), _norm(ran.outgoing), zeros, seconds))
        if len(shown) < len(rows):
            yield Text(f"{format_count(len(rows) - len(shown), 'more node')}: --full", "dim")
        devices = sorted({name for ran in rows if ran.seconds is None for name in devices_of(graph.nodes[ran.node])})
        if devices:
            yield from self.wrapped(f"ms: not timed on {', '.join(devices)}; --timeline waits for kernels.", "dim")

    def _table(self, names: Sequence[str], heads: Sequence[str], norms: Sequence[float] | None) -> "FigureTable":
        return FigureTable(self, names, heads, norms)


class FigureTable:
    """Rows of a name, figures beside it, and a bar on a logarithmic scale whose ends the heading names."""

    def __init__(
        self,
        page: Page,
        names: Sequence[str],
        heads: Sequence[str],
        norms: Sequence[float] | None,
        least_cells: int = CELLS,
    ) -> None:
        """Choose the widths.

        Args:
            page: Its width and characters.
            names: The names of all rows.
            heads: The names of the columns of figures.
            norms: What the bars show; None: there are no bars.
            least_cells: Of a column of figures.
        """
        self._page = page
        self._heads = heads
        self._cells = [max(least_cells, cell_len(head)) for head in heads]
        self._scale = LogScale(norms or ())
        figures = sum(self._cells) + len(GAP) * len(heads)
        longest = max(map(cell_len, names), default=0)
        room = page.width - figures
        has_bars = norms is not None and room - MIN_BAR_CELLS - len(GAP) >= MIN_NAME
        self._name = max(min(max(longest, MIN_HEAD), room - (MIN_BAR_CELLS + len(GAP) if has_bars else 0)), 10)
        self._shown = dict(zip(names, page.apart(names, self._name), strict=True))
        self._bar = min(room - self._name - len(GAP), MAX_BAR_CELLS) if has_bars else 0

    def head(self, name: str) -> Text:
        """Write the heading; above the bars, what their ends stand for."""
        line = self._line(name, self._heads)
        line.append(self._scale.legend(self._bar) if self._bar else "")
        line.stylize("bold")
        line.rstrip()
        line.truncate(self._page.width)
        return line

    def row(self, name: str, figures: Sequence[str], norm: float = 0.0) -> Text:
        """Write a row."""
        line = self._line(name, figures)
        line.append(self._page.bar(round(8 * self._bar * self._scale.share(norm))), "cyan")
        line.rstrip()
        line.truncate(self._page.width)  # a very narrow terminal loses the last columns
        return line

    def _line(self, name: str, figures: Sequence[str]) -> Text:
        text = self._shown.get(name) or self._page.fit(name, self._name)
        columns = zip(figures, self._cells, strict=True)
        cells = "".join(f"{GAP}{figure:>{cells}}" for figure, cells in columns)
        return Text(f"{text}{' ' * (self._name - cell_len(text))}{cells}{GAP}")


class LogScale:
    """Shares on a logarithmic scale of whole decades, from below the smallest norm to the largest."""

    def __init__(self, norms: Sequence[float]) -> None:
        """Choose the ends."""
        usable = [math.log10(norm) for norm in norms if norm > 0 and math.isfinite(norm)]
        self._high = math.ceil(max(usable)) if usable else 0
        self._low = min(math.ceil(min(usable)) - 1, self._high - 1) if usable else -1

    def share(self, norm: float) -> float:
        """Return how full a bar is."""
        if not norm > 0 or not math.isfinite(norm):
            return 0.0
        return min(max((math.log10(norm) - self._low) / (self._high - self._low), 0.0), 1.0)

    def legend(self, num_cells: int) -> str:
        """Write both ends, and that the steps between them are powers of ten."""
        low, high = f"1e{self._low:+d}", f"1e{self._high:+d}"
        return f"{low}{'log':^{max(num_cells - len(low) - len(high), 5)}}{high}"


def _times(factor: float) -> str:
    times = max(factor, 1 / factor)
    if times >= 1e6:
        return f"by a factor of {times:.1e}"
    return f"{times:.1f}-fold" if times < 10 else f"{times:,.0f}-fold"


def _copies(folded: FoldedRow, sign: str) -> str:
    return f" {sign}{len(folded.rows):,}" if len(folded.rows) > 1 else ""


def _range(values: Iterable[float | None]) -> str:
    """Write the least and the greatest: `9e-03..2e-02`, `2.6..2.8e-02`; one number where they are equal."""
    found = [value for value in values if value is not None]
    if not found or any(math.isnan(value) for value in found):
        return number(found[0] if found else None) if len(found) < 2 else "nan"
    low, high = number(min(found)), number(max(found))
    if low == high:
        return low
    exponents = {text.partition("e")[2] for text in (low, high)}
    return f"{low.partition('e')[0]}..{high}" if len(exponents) == 1 else f"{min(found):.0e}..{max(found):.0e}"


def _call(row: FlowRow) -> str:
    return f" (call {row.call})" if row.call > 1 else ""


def _names_inside(rows: Sequence[FlowRow], model: str) -> Iterator[str]:
    """Name each module relative to the one around it; an index keeps its parent."""
    around: dict[int, str] = {}
    for row in rows:
        yield short_name(row.path, around.get(row.depth - 1), model)
        around[row.depth] = row.path


def _node_name(graph: Graph, ran: NodeGradients) -> str:
    node = graph.nodes[ran.node]
    leaf = f" {node.leaf.name}" if node.leaf is not None and node.leaf.name else ""
    return f"#{ran.node} {node.name}{leaf}"


def number(value: float | None) -> str:
    """Write a number in eight cells; nothing for None."""
    if value is None:
        return ""
    return "0" if value == 0 else f"{value:.1e}" if math.isfinite(value) else str(value)


def _share(stats: GradientStats) -> str:
    if stats.num_nonfinite:
        return f"{stats.num_nonfinite:,} bad" if stats.num_nonfinite < 10_000 else f"{stats.num_nonfinite:.0e} bad"
    share = 100 * stats.zero_share
    return "" if share == 0 else "<1%" if share < 1 else f"{share:.0f}%"


def _norm(gradients: Sequence[Measured]) -> str:
    return UNKNOWN if is_any_unmeasured(gradients) else number(norm_of_all(gradients))
