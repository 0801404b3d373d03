"""Gradients of one backward call, by module, parameter and node, with findings.

What comes in: a `Graph` with gradients and the rows made of it. What goes out: lines of `rich.text.Text`, none wider
than asked for.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.gradients.folded import FoldedFlow, FoldedRow
from gradinspect.analyses.gradients.observed import (
    Fall,
    FlowRow,
    GradientNote,
    ParameterRow,
    is_any_unmeasured,
    known,
    norm_of_all,
)
from gradinspect.analyses.gradients.timeline import devices_of
from gradinspect.analyses.structure.call_names import class_beside, node_shown, short_name, shown_path
from gradinspect.analyses.structure.name_folding import fold_names, name_by_indices, with_indices_of
from gradinspect.graph import GradientStats, Graph, Measured, NodeGradients
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_count, format_ranges, format_share

CELLS = 8
MIN_BAR_CELLS = 16
MAX_BAR_CELLS = 40
GIVE_WAY = ("max", "zeros", "/weight", "ms")  # before a name is cut
MIN_HEAD = 21  # cells of the longest heading
MIN_CHANGE = 1.5  # a smaller factor is no change
UPDATE = "update/weight"
UNKNOWN = "unknown"  # a gradient that was not measured
MAX_NAMES = 4


class GradientsPage(Page):
    """Writes the parts of the report at one width."""

    def notes(self, found: Sequence[GradientNote], model: str) -> Iterator[Text]:
        """Yield each note and the parameters that it concerns."""
        for note in found:
            yield from self.wrapped(f"{note.kind}: {note.text}", "bold")
            if note.parameters:
                folded = list(fold_names(shown_path(name, model) for name in note.parameters))
                names = ", ".join(name for name, _ in folded[:MAX_NAMES])
                more = sum(len(group) for _, group in folded[MAX_NAMES:])
                rest = f" and {more:,} more" if more > 0 else ""
                label = {"killed": "no gradient reaches: ", "non-finite": "reaches: "}.get(note.kind, "")
                yield from self.wrapped(f"{label}{names}{rest}", indent=GAP)

    def unmeasured(self, sentences: Sequence[str]) -> Iterator[Text]:
        """Yield what was not measured, which is no finding."""
        for sentence in sentences:
            yield from self.wrapped(sentence)

    def fall(self, fall: Fall | None, model: str) -> Iterator[Text]:
        """Say in words how the gradient changes from the loss to the inputs."""
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

    def flow(self, rows: Sequence[FoldedFlow], max_rows: int | None = None, *, model: str = "model",
             is_part: bool = False) -> Iterator[Text]:  # fmt: skip
        """Yield one row per module call or for those of equal blocks, from the loss to the inputs, with bars.

        Args:
            rows: All rows.
            max_rows: How many of them are shown.
            model: What to call the outermost module.
            is_part: Whether rows are chosen or sorted, so that none is inside the one above.
        """
        shown = rows[:max_rows]
        paths = (_full_names if is_part else _names_inside)(shown, model)
        classes = [class_beside(row.rows[0].path, row.rows[0].class_name) for row in shown]
        names = [f"{path}{_calls(row)}{GAP if name else ''}{name}{self._copies(len(row.rows))}"
                 for row, path, name in zip(shown, paths, classes, strict=True)]  # fmt: skip
        figures = [_figures_of_calls(folded) for folded in shown]
        table = self._table(names, ("norm", "max", "zeros"), figures, [_norms(folded) for folded in shown])
        yield table.head("gradient at output of")
        named = None
        for name, folded, cells in zip(names, shown, figures, strict=True):
            yield table.row(name, cells, _norms(folded))
            odd = folded.odd_one
            if odd is not None and not (named and odd[0].path.startswith(f"{named}.")):
                named = odd[0].path
                indent = GAP * (1 if is_part else folded.depth + 1)
                yield from self.odd_one(f"{shown_path(odd[0].path, model)}{_call(odd[0])}", odd[1], indent)
        left = sum(len(folded.rows) for folded in rows[len(shown) :])
        if left or len(shown) < sum(len(folded.rows) for folded in shown):
            yield Text(f"{format_count(left, 'more module call')}: --full" if left else "Each one: --full", "dim")
        yield from table.dropped()

    def parameters(self, rows: Sequence[FoldedRow], max_rows: int | None, model: str) -> Iterator[Text]:
        """Yield one row per leaf or for those of equal blocks: the gradients accumulated into them, and the odd one."""
        has_updates = any(row.update_norm is not None for folded in rows for row in folded.rows)
        shown = rows[:max_rows]
        names = [
            f"{shown_path(folded.name, model)}{_sum_of(folded.rows)}{self._copies(len(folded.rows))}"
            for folded in shown
        ]
        heads = ("norm", "max", "zeros", "/weight", *([UPDATE] if has_updates else []))
        figures = [_figures_of_leaves(folded)[: len(heads)] for folded in shown]
        table = self._table(names, heads, figures, [folded.norms for folded in shown])
        yield table.head("gradient of")
        for name, folded, cells in zip(names, shown, figures, strict=True):
            yield table.row(name, cells, folded.norms)
            if folded.odd_one is not None:
                yield from self.odd_one(shown_path(folded.odd_one[0].name, model), folded.odd_one[1])
        yield from self._left_out([len(folded.rows) for folded in rows], len(shown))
        yield from table.dropped()

    def _left_out(self, num_leaves: Sequence[int], num_shown: int) -> Iterator[Text]:
        """Say how many leaves are in the rows that are not shown, or that several share one."""
        left = sum(num_leaves[num_shown:])
        if left or max(num_leaves, default=1) > 1:
            text = f"{format_count(left, 'more leaf', 'more leaves')}: --full" if left else "Each one: --full"
            yield from self.wrapped(text, "dim")

    def _copies(self, times: int) -> str:
        return f" {self.times(times)}".rstrip()

    def nodes(self, graph: Graph, rows: Sequence[NodeGradients], max_rows: int | None) -> Iterator[Text]:
        """Yield one row per node."""
        shown = rows[:max_rows]
        names = [node_shown(graph, ran.node) for ran in shown]
        figures = [_figures_of_node(ran) for ran in shown]
        table = self._table(names, ("norm in", "out", "zeros", "ms"), figures, None)
        yield table.head("node")
        yield from map(table.row, names, figures)
        if len(shown) < len(rows):
            yield Text(f"{format_count(len(rows) - len(shown), 'more node')}: --full", "dim")
        devices = sorted({name for ran in rows if ran.seconds is None for name in devices_of(graph.nodes[ran.node])})
        if devices:
            yield from self.wrapped(f"ms: not timed on {', '.join(devices)}; --timeline waits for kernels.", "dim")
        yield from table.dropped()

    def _table(
        self,
        names: Sequence[str],
        heads: Sequence[str],
        figures: Sequence[Sequence[str]],
        norms: Sequence[Sequence[float]] | None,
        gives_way: Sequence[str] = GIVE_WAY,
    ) -> "FigureTable":
        return FigureTable(self, names, heads, figures, norms, gives_way)


class FigureTable:
    """Rows of a name, figures beside it, and a bar on a logarithmic scale whose ends the heading names.

    Before a name is cut, columns give way.
    """

    def __init__(
        self,
        page: Page,
        names: Sequence[str],
        heads: Sequence[str],
        figures: Sequence[Sequence[str]],
        norms: Sequence[Sequence[float]] | None,
        gives_way: Sequence[str],
    ) -> None:
        """Choose the widths.

        Args:
            page: Its width and characters.
            names: The names of all rows.
            heads: The names of the columns of figures.
            figures: Those of all rows.
            norms: What the bars show, one number or several in a row; None: there are no bars.
            gives_way: The columns that are dropped if there is no room for names, in this order.
        """
        self._page = page
        self._gives_way = gives_way
        self._heads = heads
        self._cells = [max(CELLS, *map(cell_len, column)) for column in zip(heads, *figures, strict=True)]
        self._scale = LogScale([norm for several in norms or () for norm in several])
        longest = max(MIN_HEAD, *(cell_len(page.visible(name)) for name in names), 0)
        self._empty = {head for head, *cells in zip(heads, *figures, strict=True) if not any(cells)}
        has_bars = norms is not None and self._make_room(longest, has_bars=True)
        if not has_bars:
            self._make_room(longest, has_bars=False)
        self._name = max(min(longest, self._room(has_bars=has_bars)), 10)
        self._shown = dict(zip(names, page.apart(names, self._name), strict=True))
        self._bar = min(self._room(has_bars=False) - self._name - len(GAP), MAX_BAR_CELLS) if has_bars else 0

    @property
    def cuts(self) -> bool:
        """Whether a name is cut."""
        return any(shown != self._page.visible(name) for name, shown in self._shown.items())

    @property
    def cuts_within(self) -> bool:
        """Whether a name is cut elsewhere than at its start, where it says least."""
        return any(shown != name and self._page.ellipsis in shown[1:] for name, shown in self._shown.items())

    def _make_room(self, longest: int, *, has_bars: bool) -> bool:
        """Drop as many columns as needed, those first that are empty; return whether there is room for names then."""
        self._dropped: list[str] = []
        for head in sorted(self._gives_way, key=lambda head: head not in self._empty):
            if head in self._heads and longest > self._room(has_bars=has_bars):
                self._dropped.append(head)
        return longest <= self._room(has_bars=has_bars)

    def _room(self, *, has_bars: bool) -> int:
        """Count the cells that are left for names."""
        columns = zip(self._heads, self._cells, strict=True)
        figures = sum(cells + len(GAP) for head, cells in columns if head not in self._dropped)
        return self._page.width - figures - (MIN_BAR_CELLS + len(GAP) if has_bars else 0)

    def head(self, name: str) -> Text:
        """Write the heading; above the bars, what their ends stand for."""
        line = self._line(name, self._heads)
        line.append(self._scale.legend(self._bar) if self._bar else "")
        line.stylize("bold")
        line.rstrip()
        line.truncate(self._page.width)
        return line

    def row(self, name: str, figures: Sequence[str], norms: Sequence[float] = ()) -> Text:
        """Write a row; the bar of several norms is full up to the least, and light up to the greatest."""
        line = self._line(name, figures)
        shares = sorted(self._scale.share(norm) for norm in norms) or [0.0]
        bar = self._page.bar(round(8 * self._bar * shares[0]))
        line.append(bar, "cyan")
        line.append(("░" if self._page.unicode else "-") * (round(self._bar * shares[-1]) - cell_len(bar)), "cyan")
        line.rstrip()
        line.truncate(self._page.width)  # a very narrow terminal loses the last columns
        return line

    def dropped(self) -> Iterator[Text]:
        """Yield which columns gave way."""
        names = ", ".join(head for head in self._heads if head in self._dropped and head not in self._empty)
        if names:
            yield Text(self._page.fit(f"not shown at this width: {names}", self._page.width), "dim")

    def _line(self, name: str, figures: Sequence[str]) -> Text:
        text = self._shown.get(name) or self._page.fit(name, self._name)
        columns = zip(self._heads, figures, self._cells, strict=True)
        shown = (f"{GAP}{figure:>{cells}}" for head, figure, cells in columns if head not in self._dropped)
        return Text(f"{text}{' ' * (self._name - cell_len(text))}{''.join(shown)}{GAP}")


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


def ranged(values: Iterable[float | None]) -> str:
    """Write the least and the greatest: `9e-03..2e-02`, `2.6..2.8e-02`; one number where they are equal."""
    found = [value for value in values if value is not None]
    if not found or any(math.isnan(value) for value in found):
        return number(found[0] if found else None) if len(found) < 2 else "nan"
    low, high = number(min(found)), number(max(found))
    if low == high:
        return low
    if low.partition("e")[2] == high.partition("e")[2]:
        return f"{low.partition('e')[0]}..{high}"
    brief = [f"{value:.0e}" for value in (min(found), max(found))]
    return "..".join((low, high) if brief[0] == brief[1] else brief)


def _call(row: FlowRow) -> str:
    return f" (call {row.call})" if row.call > 1 else ""


def _calls(folded: FoldedFlow) -> str:
    calls = {row.call for row in folded.rows}
    return _call(folded.rows[0]) if len(calls) == 1 else f" (calls {format_ranges(calls)})"


def _norms(folded: FoldedFlow) -> list[float]:
    return [row.stats.norm for row in folded.rows]


def _full_names(rows: Sequence[FoldedFlow], model: str) -> Iterator[str]:
    yield from (shown_path(name_by_indices(one.path for one in row.rows), model) for row in rows)


def _names_inside(rows: Sequence[FoldedFlow], model: str) -> Iterator[str]:
    """Name each module relative to the one around it, and indented below it; an index keeps its parent.

    Those that are in some only of the modules around them are named by their whole paths.
    """
    around: dict[int, list[str]] = {-1: [""]}
    for row in rows:
        paths = [one.path for one in row.rows]
        outer = around[row.depth - 1]
        are_in_all = all(any(path.startswith(_beginnings(one)) for path in paths) for one in outer)
        name = short_name(paths[0], outer[0] if are_in_all else None, model)
        yield f"{GAP * row.depth}{with_indices_of(name, paths)}"
        around[row.depth] = paths


def _beginnings(path: str) -> tuple[str, ...]:
    """Return the prefixes of submodules, and of modules beside a Sequential of a block: `h.0.seq.`, `h.0.`."""
    block, _, name = path.rpartition(".")
    return (f"{path}.",) if not block or name.isdigit() else (f"{path}.", f"{block}.")


def _figures_of_calls(folded: FoldedFlow) -> tuple[str, ...]:
    stats = [row.stats for row in folded.rows]
    return ranged(_norms(folded)), ranged(each.max_abs for each in stats), _shares(stats)


def _sum_of(rows: Sequence[ParameterRow]) -> str:
    """Say how many gradients were added up, if there is more than one."""
    least, most = min(row.num_added for row in rows), max(row.num_added for row in rows)
    return "" if most < 2 else f" (sum of {most:,})" if least == most else f" (sum of {least:,}..{most:,})"


def _figures_of_leaves(folded: FoldedRow) -> list[str]:
    first = folded.rows[0]
    stats = [row.stats for row in folded.rows if row.stats is not None]
    norm = ranged(folded.norms) if stats else "none" if first.is_missing else UNKNOWN
    ratios = (row.ratio for row in folded.rows), (row.update_ratio for row in folded.rows)
    return [norm, ranged(each.max_abs for each in stats), _shares(stats) if stats else "", *map(ranged, ratios)]


def _figures_of_node(ran: NodeGradients) -> tuple[str, ...]:
    zeros = next((_share(stats) for stats in known(ran.outgoing)), "")
    seconds = "" if ran.seconds is None else f"{ran.seconds * 1e3:.2f}"
    return _norm(ran.incoming), _norm(ran.outgoing), zeros, seconds


def number(value: float | None) -> str:
    """Write a number in eight cells; nothing for None."""
    if value is None:
        return ""
    return "0" if value == 0 else f"{value:.1e}" if math.isfinite(value) else str(value)


def _share(stats: GradientStats) -> str:
    if stats.num_nonfinite:
        return f"{stats.num_nonfinite:,} bad" if stats.num_nonfinite < 10_000 else f"{stats.num_nonfinite:.0e} bad"
    return format_share(stats.num_zeros, stats.num_elements) if stats.num_zeros else ""


def _shares(several: Sequence[GradientStats]) -> str:
    """Write the least and the greatest share of zeros, or the most bad elements."""
    ordered = sorted(several, key=lambda stats: (stats.num_nonfinite, stats.zero_share))
    least, most = _share(ordered[0]), _share(ordered[-1])
    return most if least == most or ordered[-1].num_nonfinite else f"{least.removesuffix('%') or '0'}..{most}"


def _norm(gradients: Sequence[Measured]) -> str:
    return UNKNOWN if is_any_unmeasured(gradients) else number(norm_of_all(gradients))
