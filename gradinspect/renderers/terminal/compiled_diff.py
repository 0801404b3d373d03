"""A compiled step beside the same step in eager, on a terminal.

What comes in: a `CompiledDiff`. What goes out: lines of `rich.text.Text`, none wider than asked for.
"""

from collections.abc import Iterator, Sequence
from math import isinf

from rich.text import Text

from gradinspect.analyses.diff.compiled import CompiledDiff, CompiledValueDiff, OperatorValue, region_words
from gradinspect.analyses.structure.name_folding import alike, name_by_indices
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import shorten_apart
from gradinspect.units import format_count

MAX_ROWS = 20
MAX_NOTES = 5
COLUMNS = (11, 11)


class CompiledDiffPage(Page):
    """Writes a comparison at one width."""

    def lines(self, diff: CompiledDiff, *, max_rows: int | None = MAX_ROWS) -> Iterator[Text]:
        """Yield what was compared, what differs, who is to blame, and the verdict.

        Args:
            diff: What differs.
            max_rows: How many rows at most; None: all.
        """
        backends = ", ".join(diff.backends) or "torch.compile"
        yield self.title(f"{diff.label}  eager beside compiled ({backends})")
        yield from self.wrapped(self.visible(", ".join(call.words for call in diff.calls)))
        for reason in diff.breaks[:MAX_NOTES]:
            yield from self.wrapped(self.visible(f"graph break  {reason}"), "dim", indent=GAP)
        yield Text()
        if diff.eager_failure:
            yield from self._failed_in_eager(diff)
            return
        if diff.differences:
            yield from self._table(diff, max_rows)
            yield Text()
        if diff.num_eager_calls != len(diff.calls):
            yield from self.wrapped(
                f"backward calls: {diff.num_eager_calls:,} in eager, {len(diff.calls):,} compiled.", "red"
            )
        for one in diff.one_sided[:MAX_NOTES]:
            yield from self.wrapped(self.visible(f"{one.words}."), "red")
        yield from self._more(diff.one_sided)
        yield from self._blame(diff)
        yield from self._verdict(diff)
        for sentence in diff.incomparable[:MAX_NOTES]:
            yield from self.wrapped(self.visible(f"Not compared: {sentence}."), "dim")
        yield from self._more(diff.incomparable)

    def _failed_in_eager(self, diff: CompiledDiff) -> Iterator[Text]:
        yield from self.wrapped(self.visible(f"In eager: {diff.eager_failure}"), "red")
        yield from self.wrapped("Compiled, the program goes on, so nothing could be compared.", "bold")
        yield from self.wrapped(self.visible(goes_on_sentence(diff)))

    def _more(self, sentences: Sequence[object]) -> Iterator[Text]:
        if len(sentences) > MAX_NOTES:
            yield Text(f"{GAP}and {len(sentences) - MAX_NOTES:,} more", "dim")

    def _table(self, diff: CompiledDiff, max_rows: int | None) -> Iterator[Text]:
        """Yield the values that differ, those of equal blocks in one row, the worst first in each call."""
        room = self.width - sum(COLUMNS) - len(GAP) - 10
        groups = list(alike(diff.differences, lambda one: (one.value.name,), _kind))
        shown = groups[:max_rows]
        names = shorten_apart([_name(group) for group in shown], room, self.ellipsis)
        yield Text(f"{'':10}{'':{room}}{GAP}{'off by':>{COLUMNS[0]}}{'rounding':>{COLUMNS[1]}}", "bold")
        for name, group in zip(names, shown, strict=True):
            worst = max(group, key=lambda one: one.value.relative)
            rounding = f"{max(one.rounding for one in group):.1e}"
            role = worst.value.role
            yield Text(f"{role:10}{self.visible(name):{room}}{GAP}{_off(worst):>{COLUMNS[0]}}{rounding:>{COLUMNS[1]}}")
        if len(groups) > len(shown):
            yield Text(f"and {len(groups) - len(shown):,} more rows: --full", "dim")

    def _blame(self, diff: CompiledDiff) -> Iterator[Text]:
        if not diff.stage:
            return
        before = f" It is right with {', '.join(diff.right)}." if diff.right else ""
        failed = f" It fails with {', '.join(diff.failed)}." if diff.failed else ""
        part = diff.part
        who = f"It goes wrong with backend {diff.stage}: {part}." if part else f"It goes wrong in {diff.stage} itself."
        yield from self.wrapped(self.visible(f"{who}{before}{failed}"))
        region = region_words(diff)
        if region:
            yield from self.wrapped(self.visible(region), "bold")
        if part and diff.operator is None:
            line = "The line in it" if diff.regions else "The line"
            yield from self.wrapped(f"{line} is not known: operators are compared only where the backend is at fault.")
            return
        if diff.operator is not None:
            yield from self.wrapped(self.visible(operator_sentence(diff.operator)), "bold")
        elif diff.replay_problem:
            yield from self.wrapped(self.visible(f"Its operators were not compared: {diff.replay_problem}."))
        elif not diff.num_replayed:
            yield from self.wrapped("Its operators were not compared: it compiles no graph of AOTAutograd.")
        else:
            graphs = format_count(diff.num_replayed, "compiled graph")
            yield from self.wrapped(f"No operator of {graphs} is off, run alone.")

    def _verdict(self, diff: CompiledDiff) -> Iterator[Text]:
        graphs = format_count(diff.num_graphs, "compiled graph")
        if diff.is_same:
            off = f"at most {diff.largest:.1e} off, where rounding makes {diff.largest_rounding:.1e}"
            values = format_count(diff.num_compared, "value")
            yield from self.wrapped(f"No difference but rounding: {values}, {graphs}, {off}.", "bold green")
            return
        compared = format_count(diff.num_compared, "value")
        if not diff.differences:
            equal = f"{compared} {'is' if diff.num_compared == 1 else 'are'} equal but for rounding, {graphs}"
            yield from self.wrapped(f"Different: {_other_differences(diff)}. {equal}.", "bold")
            return
        verb = "differs" if len(diff.differences) == 1 else "differ"
        yield from self.wrapped(
            f"{len(diff.differences):,} of {compared} {verb} by more than rounding, {graphs}.", "bold"
        )


def _other_differences(diff: CompiledDiff) -> str:
    """Say what differs beside the values that both runs have."""
    roles = {one.role for one in diff.one_sided}
    words = [
        ("the number of backward calls", diff.num_eager_calls != len(diff.calls)),
        ("which values there are, or their shapes", bool(roles - {"memory"})),
        ("which tensors share memory", "memory" in roles),
    ]
    return ", ".join(word for word, applies in words if applies)


def goes_on_sentence(diff: CompiledDiff) -> str:
    """Say with which backends a program goes on that fails in eager."""
    part = diff.part or "the backend itself"
    as_eager = f"It fails with {', '.join(diff.right)} too. " if diff.right else ""
    return f"{as_eager}It goes on with {diff.stage}: {part}."


def operator_sentence(found: OperatorValue) -> str:
    """Say which operator is wrong, and where it comes from."""
    line = f", {found.frame.file}:{found.frame.line}" if found.frame is not None else ""
    if found.is_drawn_again:
        return f"First drawn again: {found.words}{line}. Backward gets other random numbers than forward had."
    off = f"off by {found.error:.1e}"
    if found.is_fused:
        first = f"First wrong result: {found.words}{line}, {off}."
        if found.num_results > 1:
            results = f"All {found.num_results:,} wrong results, off by at most {found.error:.1e}"
            first = f"{results}, come from {found.words}{line}."
        return (
            f"{first} It is right if each operator's result is asked for: what the backend makes of several is wrong "
            "(fused, in another order, or a write that is lost)."
        )
    return f"First wrong operator: {found.words}{line}, {off} where rounding makes {found.rounding:.1e}."


def _kind(one: CompiledValueDiff) -> tuple[object, ...]:
    return one.value.call, one.value.role, one.value.shape


def _off(one: CompiledValueDiff) -> str:
    if one.value.num_odd:
        return "NaN or Inf"
    return "0 in eager" if isinf(one.value.relative) else f"{one.value.relative:.1e}"


def _name(group: Sequence[CompiledValueDiff]) -> str:
    names = [one.value.name for one in group]
    return names[0] if len(names) == 1 else f"{name_by_indices(names)} ×{len(names)}"
