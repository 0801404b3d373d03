"""What a compiled step keeps under each activation memory budget, on a terminal.

What comes in: a `CompiledMemory`. What goes out: lines of `rich.text.Text`, none wider than asked for.
"""

from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from gradinspect.analyses.memory.budgets import BudgetRow, CompiledMemory, UnchangedRun
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_bytes, format_count, format_flops

SIZE = 12  # cells
_WHAT = (
    "Kept: for backward, beside weights, when it begins. Peak: of forward and backward, beside weights and what the "
    "program holds itself; of compiled code operator by operator, so one that fuses or moves them needs less, or more."
)
_HOW = "Set it by torch._functorch.config.activation_memory_budget, before the first compiled call."


class BudgetPage(Page):
    """Writes one page."""

    def lines(self, found: CompiledMemory) -> Iterator[Text]:
        """Yield the table, and what it means."""
        table = found.compiled
        backends = ", ".join(table.backends) or "torch.compile"
        yield self.title(f"{table.source}  memory of a compiled step by budget ({backends})")
        yield from self.wrapped(self.visible(f"{table.call}, {format_count(table.num_graphs, 'compiled graph')}"))
        yield Text()
        groups = [list(group) for _, group in groupby(table.rows, _same)]
        names = [*(one.what for one in found.without), *(_budgets(group) for group in groups)]
        width = min(max(map(len, names)), self.width - 2 * SIZE - 2 * len(GAP) - 24)
        yield Text(f"{'':{width}}{'kept':>{SIZE}}{'peak':>{SIZE}}{GAP}computed again, FLOPs", "bold")
        for one in found.without:
            yield self._without(one, width)
        for group in groups:
            is_current = any(row.budget == table.current for row in group)
            yield self._row(f"{_budgets(group):{width}}", group[0], "bold" if is_current else "")
        yield Text()
        yield from self.wrapped(f"The program's budget is {table.current:g}. {_HOW}")
        for sentence in (_WHAT, *table.notes, *_problems(found)):
            yield from self.wrapped(self.visible(sentence), "dim")

    def _without(self, one: UnchangedRun, width: int) -> Text:
        sizes = "".join(f"{format_bytes(size) if size else '?':>{SIZE}}" for size in (one.kept_bytes, one.peak_bytes))
        return Text(f"{self.fit(one.what, width):{width}}{sizes}")

    def _row(self, name: str, row: BudgetRow, style: str) -> Text:
        flops = f", {format_flops(row.recomputed_flops)}" if row.recomputed_flops else ""
        again = f"{format_count(row.num_recomputed, 'operator')}{flops}" if row.num_recomputed else ""
        line = f"{name}{format_bytes(row.kept_bytes):>{SIZE}}{format_bytes(row.peak_bytes):>{SIZE}}{GAP}{again}"
        return Text(line.rstrip(), style)


def _same(row: BudgetRow) -> tuple[int, ...]:
    return row.kept_bytes, row.peak_bytes, row.num_recomputed, row.recomputed_flops


def _budgets(rows: list[BudgetRow]) -> str:
    first, last = f"{rows[0].budget:g}", f"{rows[-1].budget:g}"
    return f"budget {first}" if first == last else f"budget {first}-{last}"


def _problems(found: CompiledMemory) -> Iterator[str]:
    for one in found.without:
        if one.note:
            yield one.note
        if one.problem:
            yield f"Not known of {one.what}: {one.problem}"
