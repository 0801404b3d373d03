"""How gradients change over several backward calls: one column per call or a sparkline.

What comes in: `GradientSteps` and the moves made of it. What goes out: lines of `rich.text.Text`, none wider than
asked for.
"""

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from gradinspect.analyses.gradients.folded import FoldedMove, folded_moves, unfolded_moves
from gradinspect.analyses.gradients.observed import ParameterRow
from gradinspect.analyses.gradients.steps import GradientStep, GradientSteps, Move, by_line
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.renderers.terminal.gradients.call import (
    CELLS,
    UNKNOWN,
    UPDATE,
    GradientsPage,
    ranged,
)
from gradinspect.renderers.terminal.page import GAP
from gradinspect.renderers.terminal.text import listed_within
from gradinspect.units import format_calls

LEVELS, ASCII_LEVELS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
NONE, ZERO, NOT_FINITE = " ", "0", "!"
MIN_NAME = 20  # cells left for names beside the columns
MAX_LINE = 24  # bars in a sparkline; more calls are sampled
FEW_CALLS = 4  # whose norms say more than bars: those of the first and the last stay


class StepsPage(GradientsPage):
    """Writes the report of several calls."""

    def head(self, found: GradientSteps) -> Iterator[Text]:
        """Yield the locations of the first and last call, and how the loss changed."""
        first, last = found.steps[0], found.steps[-1]
        several = len(found.steps) > 1
        yield self.title(first.captured_at, f" ... #{last.number}" if several else "")
        yield from self.other_calls(first.other_calls)
        is_grad = found.graph.captured_at.kind == "grad"
        seen = format_calls(0 if is_grad else len(found.steps), len(found.steps) if is_grad else 0)
        ended = f", {found.asked:,} requested: the program made no more" if len(found.steps) < found.asked else ""
        loss = _losses(found.steps) if len(by_line(found.steps)) == 1 else ""
        yield from self.wrapped(f"{seen} observed{ended}{loss}")

    def tables(
        self,
        steps: Sequence[GradientStep],
        rows: Sequence[Move],
        max_rows: int | None,
        *,
        model: str,
        folds: bool = False,
    ) -> Iterator[Text]:
        """Yield a table for the calls on each line of the program; above each of several, its losses.

        Args:
            steps: All calls.
            rows: Parameters through all of them.
            max_rows: How many rows a table has.
            folds: Whether parameters of equal blocks share a row.
            model: What to call the outermost module.
        """
        groups = by_line(steps)
        fold = folded_moves if folds else unfolded_moves
        for places in groups:
            alike = [steps[place] for place in places]
            if len(groups) > 1:
                yield from [Text()] if places is not groups[0] else []
                yield self.title(alike[0].line)
                calls = listed_within([f"#{step.number}" for step in alike], self.width // 2, lambda n: f"{n:,} more")
                yield from self.wrapped(f"{calls}{_losses(alike)}")
            moves = (move.in_calls(places) for move in rows)
            yield from self.moves(alike, list(fold([move for move in moves if any(move.rows)])), max_rows, model)

    def moves(
        self, steps: Sequence[GradientStep], rows: Sequence[FoldedMove], max_rows: int | None, model: str
    ) -> Iterator[Text]:
        """Yield a row per parameter or those of equal blocks: its norm in each call, or first, last and a sparkline."""
        shown = rows[:max_rows]
        columns = [
            [f"#{step.number}", *(_figure(folded.in_call(place)) for folded in shown)]
            for place, step in enumerate(steps)
        ]
        updates = [ranged(map(_last_update, folded.moves)) for folded in shown]
        update = [[UPDATE, *updates]] if any(updates) else []
        num_cells = sum(max(CELLS, *map(len, column)) + len(GAP) for column in (*columns, *update))
        is_wide = num_cells > self.width - MIN_NAME
        gives_way: list[str] = []
        if is_wide and len(steps) <= FEW_CALLS:
            gives_way = [UPDATE, *(column[0] for column in columns[1:-1])]
            columns += update
        elif is_wide:
            lines = [f"{columns[0][0]}..{steps[-1].number}", *(self.line(folded.norms) for folded in shown)]
            columns = [columns[0], columns[-1], *update, lines]
        else:
            columns += update
        heads, *cells = zip(*columns, strict=True)
        names = [f"{shown_path(folded.name, model)}{self._copies(len(folded.moves))}" for folded in shown]
        table = self._table(names, heads, cells, None, gives_way)
        without_updates = self._table(names, heads, cells, None, [*gives_way, UPDATE])
        if table.cuts_within or not without_updates.cuts:
            table = without_updates
        yield table.head("gradient norm of")
        for name, folded, figures in zip(names, shown, cells, strict=True):
            yield table.row(name, figures)
            if folded.odd_one is not None:
                odd, times = folded.odd_one
                yield from self.odd_one(shown_path(odd, model), times)
        yield from self._left_out([len(folded.moves) for folded in rows], len(shown))
        yield from table.dropped()

    def line(self, norms: Sequence[float | None]) -> str:
        """Draw one bar per call, on the row's own logarithmic scale of at least a factor of ten."""
        chosen = [norms[index * (len(norms) - 1) // (MAX_LINE - 1)] for index in range(MAX_LINE)]
        chosen = list(norms) if len(norms) <= MAX_LINE else chosen
        usable = [math.log10(norm) for norm in chosen if norm is not None and norm > 0 and math.isfinite(norm)]
        middle = (max(usable) + min(usable)) / 2 if usable else 0.0
        width = max(max(usable) - min(usable), 1.0) if usable else 1.0
        return "".join(self._level(norm, middle, width) for norm in chosen)

    def _level(self, norm: float | None, middle: float, width: float) -> str:
        """Choose a bar. The range is centered on a level, so that small changes stay on that level."""
        if norm is None:
            return NONE
        if not math.isfinite(norm):
            return NOT_FINITE
        if norm == 0:
            return ZERO
        levels = LEVELS if self.unicode else ASCII_LEVELS
        place = math.floor((math.log10(norm) - middle) / width * len(levels) + 0.5)
        return levels[min(max(len(levels) // 2 + place, 0), len(levels) - 1)]


def _losses(steps: Sequence[GradientStep]) -> str:
    """Write the first and the last loss, and whether it rises."""
    losses = [step.loss for step in steps if step.loss is not None]
    if len(losses) < 2:
        return f", loss {losses[0]:.4g}" if losses else ""
    return f", loss {losses[0]:.4g} to {losses[-1]:.4g}{' (it rises)' if losses[-1] > losses[0] else ''}"


def _figure(rows: Sequence[ParameterRow | None]) -> str:
    """Write the norms of one call, which are alike. NOTE [Unmeasured is not missing] in `graph`."""
    if rows[0] is None or rows[0].is_missing:
        return "none"
    norms = [row.stats.norm for row in rows if row is not None and row.stats is not None]
    return ranged(norms) if norms else UNKNOWN


def _last_update(move: Move) -> float | None:
    ratios = [row.update_ratio for row in move.rows if row is not None and row.update_ratio is not None]
    return ratios[-1] if ratios else None
