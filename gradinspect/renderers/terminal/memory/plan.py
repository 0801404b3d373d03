"""Plans for the terminal: the verdict, the plans that fit, what a trial has shown, and the code to paste.

What comes in: a `PlanReport`. What goes out: lines that fit the terminal, except the code, which stays whole.
"""

from collections.abc import Iterable, Iterator

from rich.text import Text

from gradinspect.analyses.planning.changes import (
    NamedPlace,
    Plan,
    descriptions_of,
    edits_of,
    module_changes_of,
    rounding_of,
    stepping_of,
)
from gradinspect.analyses.planning.code import functions_of
from gradinspect.analyses.planning.report import (
    Paste,
    PlanReport,
    floor_sentence,
    flops_ratio,
    lowest_sentence,
    modules_paste,
    optimizers_paste,
    peak_of,
)
from gradinspect.analyses.planning.search import FoundPlans, PlanOutcome
from gradinspect.renderers.terminal.memory.plan_facts import (
    cost,
    excess_lines,
    moving,
    notes_of,
    saving,
    search_notes,
    trial_lines,
)
from gradinspect.renderers.terminal.page import Page
from gradinspect.units import format_beside, format_count

MAX_PLANS = 5
MAX_CODE = 60  # characters of a line of the program that is changed
NUM_LABEL = 42  # cells before what a plan changes
_GRADIENTS = ("bit-equal", "rounded", "bfloat16", "bfloat16")  # by `rounding_of`


class PlanPage(Page):
    """Writes one page: what to do first, what it saves and costs, other plans, and last the code, to be copied."""

    def lines(self, report: PlanReport) -> Iterator[Text]:
        """Yield the page."""
        search = report.search
        first = search.fitting[0] if search.fitting else search.lowest
        yield from self.paragraph(_verdict(report))
        for note in report.notes:  # above the figures whose meaning they change
            yield from self.paragraph(note, "  ")
        if not search.fitting:
            yield from self._paragraphs([floor_sentence(search.lowest), *search_notes(report)])
        if first.plan.changes:
            yield from self._what_to_do(report, first)
        yield from self._table(report, first)
        notes = list(notes_of(report))
        if notes:
            yield Text()
            yield from self._paragraphs(notes)
        if first.plan.changes:
            yield from self._codes(report, first)

    def _what_to_do(self, report: PlanReport, first: PlanOutcome) -> Iterator[Text]:
        """Yield what a plan saves and costs, and its steps."""
        if report.search.fitting:
            yield from self._facts(report, first)
            yield Text()
            yield Text("what to do", "bold")
        else:
            yield Text()
            yield Text("what comes closest", "bold")
            yield from self._facts(report, first)
        yield from self._steps(report, first)

    def _facts(self, report: PlanReport, outcome: PlanOutcome) -> Iterator[Text]:
        """Yield what a plan saves and costs, and what its trial has shown."""
        plain, trial = report.search.plain, report.trial
        yield from self._hanging("saves  ", saving(plain, outcome))
        yield from self._hanging("costs  ", cost(plain, outcome))
        shown = [] if trial is None else [*trial_lines(trial), *excess_lines(report)]
        for number, line in enumerate(shown):
            yield from self._hanging("       " if number else "tried  ", line)

    def _steps(self, report: PlanReport, outcome: PlanOutcome) -> Iterator[Text]:
        """Yield the lines to change, one by one, and what is pasted."""
        steps = [f"{self._line(edit.place, edit.code)}{edit.what}" for edit in edits_of(outcome.plan)]
        for paste, described in _pastes(report, outcome, self.times_sign):
            steps.append(f"{described}: paste the code below {self._where(paste.place)}")
        for number, step in enumerate(steps, 1):
            yield from self._hanging(f"  {number}  ", step)

    def _line(self, place: str, code: str) -> str:
        """Name a line to change: `train.py:12, logits = head(x): `."""
        line = ", ".join(filter(None, (place, self.fit(code, MAX_CODE))))
        return f"{line}: " if line else ""

    def _where(self, place: NamedPlace | None) -> str:
        if place is None:
            return "after what it changes is made, before the first step"
        return f"after {place.after}, {self.fit(place.code, MAX_CODE)}"

    def _paragraphs(self, texts: Iterable[str]) -> Iterator[Text]:
        for text in texts:
            yield from self.paragraph(text)

    def _table(self, report: PlanReport, first: PlanOutcome) -> Iterator[Text]:
        """Yield the plain program, then the plans that fit, or what less work can do, down to what needs least."""
        search = report.search
        shown = _shown(search.fitting) if search.fitting else _down_to(search.lowest, search.front)
        shown = tuple(outcome for outcome in shown if outcome.plan.changes)
        if not shown or shown == (first,):
            return  # nothing to add
        described = [descriptions_of(outcome.plan, self.times_sign) for outcome in shown]
        shared = [each for each in described[0] if all(each in others for others in described)] if shown[1:] else []
        yield Text()
        yield Text(f"{'peak':>12}{'FLOPs':>8}{'changes':>9}  {'gradients':<11}plan", "bold")
        yield from self._row(search.plain, search, "no change")
        if shared:
            yield from self._hanging(" " * NUM_LABEL, f"each of these: {'; '.join(shared)}")
        for outcome, parts in zip(shown, described, strict=True):
            more = "; ".join(part for part in parts if part not in shared)
            yield from self._row(outcome, search, "; ".join(filter(None, (more or "nothing more", moving(outcome)))))
        left_out = len(search.fitting) - MAX_PLANS
        if left_out > 0:
            yield Text(f"{'':{NUM_LABEL}}and {format_count(left_out, 'more plan')} that fit")

    def _row(self, outcome: PlanOutcome, search: FoundPlans, described: str) -> Iterator[Text]:
        ratio = flops_ratio(outcome, search.plain)
        work = "" if ratio is None else f"{self.times_sign}{ratio:.2f}"
        exact = _GRADIENTS[rounding_of(outcome.plan)] if outcome.plan.changes else ""
        peak, changes = format_beside(outcome.peak_bytes, search.limit), outcome.plan.num_changes
        label = f"{peak:>12}{work:>8}{changes:>9}  {exact:<11}"
        yield from self._hanging(label, described)

    def _codes(self, report: PlanReport, outcome: PlanOutcome) -> Iterator[Text]:
        """Yield the code, each piece under where it goes."""
        functions = functions_of(outcome.plan)
        pieces = [("code to paste above what calls it", functions)] if functions else []
        for paste, _ in _pastes(report, outcome, self.times_sign):
            after = "" if paste.place is None else f" after {paste.place.after}"
            pieces.append((f"code to paste{after}", paste.code))
        for heading, code in pieces:
            yield Text()
            yield Text(heading, "bold")
            yield Text()
            yield from (Text(line) for line in code.splitlines())

    def _hanging(self, label: str, text: str) -> Iterator[Text]:
        """Write a text beside a label."""
        first, *rest = self.paragraph(text, " " * len(label))
        yield Text(label) + first[len(label) :]
        yield from rest


def _pastes(report: PlanReport, outcome: PlanOutcome, times: str) -> list[tuple[Paste, str]]:
    """List the code to paste, and what it does."""
    modules = "; ".join(descriptions_of(Plan(changes=tuple(module_changes_of(outcome.plan))), times))
    stepping = stepping_of(outcome.plan)
    optimizers = "" if stepping is None else stepping.describe(times)
    both = ((modules_paste(report, outcome), modules), (optimizers_paste(outcome), optimizers))
    return [(paste, described) for paste, described in both if paste.code]


def _shown(fitting: tuple[PlanOutcome, ...]) -> tuple[PlanOutcome, ...]:
    """Choose the cheapest plans, and one that moves tensors, if there is one: the cost of moving is not known."""
    first = next((outcome for outcome in fitting if outcome.moved_bytes), None)
    if first is None or first in fitting[:MAX_PLANS]:
        return fitting[:MAX_PLANS]
    return (*fitting[: MAX_PLANS - 1], first)


def _down_to(lowest: PlanOutcome, front: tuple[PlanOutcome, ...]) -> tuple[PlanOutcome, ...]:
    """Choose the most expensive plans of a front, and the one that needs least."""
    last = front[-MAX_PLANS:]
    return last if lowest in last else (*last[1:], lowest)


def _verdict(report: PlanReport) -> str:
    search = report.search
    peak = peak_of(search.plain, search.limit)
    if not search.fitting:
        return lowest_sentence(report)
    best = search.fitting[0]
    limit = format_beside(search.limit, best.peak_bytes)
    if not report.fits:
        return f"It should fit with a change, but what was measured does not: limit {limit}, {report.source}"
    if not best.plan.changes:
        return f"It fits as it is: peak {peak}, limit {limit}, {report.source}"
    lower = peak_of(best, search.limit)
    return f"It fits with a change: peak {lower} instead of {peak}, limit {limit}, {report.source}"
