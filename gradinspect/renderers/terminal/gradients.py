"""Gradients of one backward call, by module, parameter and node, with findings, as text, CSV and JSON.

What comes in: a `Graph` with gradients and the rows made of it. What goes out: lines of `rich.text.Text`, none wider
than asked for.
"""

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.gradients.observed import FlowRow, GradientNote, ParameterRow, gradients_of
from gradinspect.graph import GradientStats, Graph, NodeGradients, Record, source_of
from gradinspect.renderers.data.csv import render_csv
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_count

CELLS = 8
BAR_CELLS = 16
MIN_NAME = 12  # cells left for names beside a bar
UPDATE = "update/weight"
MAX_NAMES = 4
NODE_COLUMNS = ("node", "order", "name", "module", "source", "direction", "position", *GradientStats.__struct_fields__)


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

    def flow(self, rows: Sequence[FlowRow], max_rows: int | None = None) -> Iterator[Text]:
        """Yield one row per module call, from the loss to the inputs, with bars on a logarithmic scale."""
        yield self._head("gradient at output of", ("norm", "max", "zeros"))
        shown = rows[:max_rows]
        scale = _LogScale([row.stats.norm for row in shown])
        for row in shown:
            call = f" (call {row.call})" if row.call > 1 else ""
            name = f"{GAP * row.depth}{row.path.rpartition('.')[2] or 'model'}{call}{GAP}{row.class_name}"
            yield self._row(name, (number(row.stats.norm), number(row.stats.max_abs), _share(row.stats)),
                            scale.share(row.stats.norm))  # fmt: skip
        if len(shown) < len(rows):
            yield Text(f"{format_count(len(rows) - len(shown), 'more module call')}: --full", "dim")

    def parameters(self, rows: Sequence[ParameterRow], max_rows: int | None) -> Iterator[Text]:
        """Yield one row per leaf: the gradient that was accumulated into it."""
        has_updates = any(row.update_norm is not None for row in rows)
        update = [UPDATE] if has_updates else []
        yield self._head("gradient of", ("norm", "max", "zeros", "/weight", *update))
        shown = rows[:max_rows]
        scale = _LogScale([row.stats.norm for row in shown if row.stats is not None])
        for row in shown:
            name = row.name + (f" (from {row.num_added:,})" if row.num_added > 1 else "")
            if row.stats is None:
                figures = ["none", "", "", ""]
            else:
                figures = [number(row.stats.norm), number(row.stats.max_abs), _share(row.stats), number(row.ratio)]
            figures += [f"{number(row.update_ratio):>{len(UPDATE)}}"] if has_updates else []
            yield self._row(name, figures, 0.0 if row.stats is None else scale.share(row.stats.norm))
        if len(shown) < len(rows):
            yield Text(f"{format_count(len(rows) - len(shown), 'more leaf', 'more leaves')}: --full", "dim")

    def nodes(self, graph: Graph, max_rows: int | None) -> Iterator[Text]:
        """Yield one row per node, in the order in which backward ran them."""
        yield self._head("node", ("norm in", "out", "zeros", "ms"), has_bars=False)
        ordered = _by_order(graph)
        for ran in ordered[:max_rows]:
            node = graph.nodes[ran.node]
            leaf = f" {node.leaf.name}" if node.leaf is not None and node.leaf.name else ""
            incoming = _norm(ran.incoming)
            outgoing = _norm(ran.outgoing)
            zeros = next((_share(stats) for stats in ran.outgoing if stats is not None), "")
            figures = (number(incoming), number(outgoing), zeros, f"{ran.seconds * 1e3:.2f}" if ran.seconds else "")
            yield self._row(f"#{ran.node} {node.name}{leaf}", figures, None)
        if max_rows is not None and len(ordered) > max_rows:
            yield Text(f"{format_count(len(ordered) - max_rows, 'more node')}: --full", "dim")

    def _head(self, name: str, columns: Sequence[str], *, has_bars: bool = True) -> Text:
        line = self._row(name, columns, 0.0 if has_bars else None)
        line.stylize("bold")
        return line

    def _row(self, name: str, figures: Sequence[str], share: float | None) -> Text:
        room = self.width - sum(max(CELLS, len(figure)) + len(GAP) for figure in figures)
        bar = BAR_CELLS if room - BAR_CELLS - len(GAP) >= MIN_NAME and share is not None else 0
        room = max(room - (bar + len(GAP) if bar else 0), 10)
        text = self.fit(name, room)
        cells = "".join(f"{GAP}{figure:>{CELLS}}" for figure in figures)
        line = Text(f"{text}{' ' * (room - cell_len(text))}{cells}{GAP}")
        line.append(self.bar(round(8 * bar * (share or 0.0))), "cyan")
        line.rstrip()
        line.truncate(self.width)  # a very narrow terminal loses the last columns
        return line


class _LogScale:
    """Shares on a logarithmic scale: the largest norm fills the bar, a thousandth of the smallest is empty."""

    def __init__(self, norms: Sequence[float]) -> None:
        usable = [norm for norm in norms if norm > 0 and math.isfinite(norm)]
        self._high = math.log10(max(usable)) if usable else 0.0
        self._low = math.log10(min(usable)) - 1 if usable else -1.0

    def share(self, norm: float) -> float:
        if not norm > 0 or not math.isfinite(norm):
            return 0.0
        return min(max((math.log10(norm) - self._low) / (self._high - self._low), 0.0), 1.0)


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


def _norm(stats: Sequence[GradientStats | None]) -> float | None:
    norms = [item.norm for item in stats if item is not None]
    return math.sqrt(sum(norm * norm for norm in norms)) if norms else None


def render_gradients_csv(graph: Graph) -> str:
    """Write one line per gradient: what each node received and returned, in the order of backward."""
    return render_csv(NODE_COLUMNS, _csv_lines(graph))


def _csv_lines(graph: Graph) -> Iterator[list[object]]:
    for ran in _by_order(graph):
        node = graph.nodes[ran.node]
        module = "" if node.module is None else graph.modules[node.module].path
        source = source_of(graph, node) or ""
        for direction, gradients in (("in", ran.incoming), ("out", ran.outgoing)):
            for position, stats in enumerate(gradients):
                if stats is not None:
                    shape = "x".join(map(str, stats.shape))
                    figures = [shape, *(getattr(stats, field) for field in GradientStats.__struct_fields__[1:])]
                    yield [ran.node, ran.order, node.name, module, source, direction, position, *figures]


def render_gradients_json(
    graph: Graph, captured_at: str, findings: Sequence[GradientNote], parameters: Sequence[ParameterRow]
) -> str:
    """Write the findings, the parameters, and each node with its gradients."""
    return render_json({
        "captured_at": captured_at,
        "loss": gradients_of(graph).loss,
        "findings": findings,
        "parameters": [row_fields(row) for row in parameters],
        "nodes": node_fields(graph),
    })  # fmt: skip


def row_fields(row: ParameterRow) -> dict[str, object]:
    """Return a parameter's fields and ratios."""
    return {**_fields(row), "ratio": row.ratio, "update_ratio": row.update_ratio}


def node_fields(graph: Graph) -> list[dict[str, object]]:
    """Return the fields and the name of each node, in the order backward ran them."""
    return [{"name": graph.nodes[ran.node].name, **_fields(ran)} for ran in _by_order(graph)]


def _by_order(graph: Graph) -> list[NodeGradients]:
    return sorted(gradients_of(graph).nodes, key=lambda node: node.order)


def _fields(record: Record) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
