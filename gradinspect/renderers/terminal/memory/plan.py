"""Plans for the terminal: the verdict, the plans that fit, what a trial has shown, and the code to paste.

What comes in: a `PlanReport`. What goes out: lines that fit the terminal, except the code, which stays whole.
"""

from collections.abc import Iterator

from rich.text import Text

from gradinspect.analyses.memory.step import FRAGMENTS, SCRATCH
from gradinspect.analyses.planning.changes import NamedPlace, describe_plan, edits_of
from gradinspect.analyses.planning.code import functions_of
from gradinspect.analyses.planning.report import (
    PlanReport,
    cut_sentence,
    excess_bytes,
    floor_sentence,
    flops_ratio,
    fused_loss_sentence,
    held_sentence,
    lowest_sentence,
    modules_paste,
    optimizers_paste,
    peak_of,
    states_sentence,
)
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.analyses.planning.trial import Trial
from gradinspect.renderers.terminal.page import Page
from gradinspect.units import format_beside, format_bytes, format_count

MAX_PLANS = 5
_TRIED = (
    "checkpoints, gradients freed earlier, optimizers that need less, deletions, chunked loss, bfloat16 saves, autocast"
)
_OFFLOADED = "What modules save was also offloaded to the CPU: a run on the device shows what the moves cost."
_NOT_SPLIT = "--split NAME"
_NOT_OFFLOADED = "--device cuda"
_SHORT = {SCRATCH: "scratch memory of some kernels", FRAGMENTS: "fragmentation"}
_OF_RANKS = "buffers of NCCL"  # a plan is for one process


class PlanPage(Page):
    """Writes one page."""

    def lines(self, report: PlanReport) -> Iterator[Text]:
        """Yield the page."""
        search = report.search
        yield from self.paragraph(_verdict(report))
        if not search.fitting:
            yield from self.paragraph(floor_sentence(search.lowest))
        yield from self._table(report)
        first = search.fitting[0] if search.fitting else search.lowest
        if first.plan.changes:
            yield from self._change(report, first)
        if report.trial is not None:
            yield Text()
            yield Text("tried with values", "bold")
            for line in (*_trial_lines(report.trial), *_excess_lines(report)):
                yield from self.paragraph(line, "  ")
        yield Text()
        for note in (*_search_notes(report), *report.search.refused, *map(held_sentence, report.held), *report.notes):
            yield from self.paragraph(note)
        if not search.fitting:
            return  # what is not counted would come on top
        not_counted = [_SHORT.get(what, what) for what in report.not_counted if what != _OF_RANKS]
        yield from self.paragraph(f"Not counted: {', '.join(not_counted)}.")

    def _table(self, report: PlanReport) -> Iterator[Text]:
        """Yield the plain program, then the plans that fit, or what less work can do, down to what needs least."""
        search = report.search
        shown = _shown(search.fitting) if search.fitting else _down_to(search.lowest, search.front)
        rows = [search.plain, *(outcome for outcome in shown if outcome.plan.changes)]
        yield Text()
        yield Text(f"{'peak':>12}{'at backward':>12}{'FLOPs':>8}  plan", "bold")
        for outcome in rows:
            ratio = flops_ratio(outcome, search.plain)
            work = "" if ratio is None else f"x{ratio:.2f}"
            peak, held = format_beside(outcome.peak_bytes, search.limit), format_bytes(outcome.held_bytes)
            start = f"{peak:>12}{held:>12}{work:>8}  "
            first, *rest = self.paragraph(_described(outcome, "×" if self.unicode else "x"), " " * len(start))
            yield Text(start) + first[len(start) :]
            yield from rest
        more = len(search.fitting) - MAX_PLANS
        if more > 0:
            yield Text(f"{'':34}and {format_count(more, 'more plan')} that fit")

    def _change(self, report: PlanReport, outcome: PlanOutcome) -> Iterator[Text]:
        """Yield the lines to change."""
        yield Text()
        yield Text("the change to make" if report.search.fitting else "the change with the lowest peak", "bold")
        for line in edits_of(outcome.plan):
            yield from self.paragraph(line, "  ")
        functions = functions_of(outcome.plan)
        if functions:
            yield Text()
            yield from (Text(line) for line in functions.splitlines())
            yield Text()
        pastes = (modules_paste(report, outcome), optimizers_paste(outcome))
        for number, paste in enumerate(paste for paste in pastes if paste.code):
            yield from [Text()] if number else []
            yield from self.paragraph(_where(paste.place), "  ")
            yield Text()
            yield from (Text(line) for line in paste.code.splitlines())


def _shown(fitting: tuple[PlanOutcome, ...]) -> tuple[PlanOutcome, ...]:
    """Choose the cheapest plans, with one that moves something, if there is one: what that costs is not known."""
    first = next((outcome for outcome in fitting if outcome.moved_bytes), None)
    if first is None or first in fitting[:MAX_PLANS]:
        return fitting[:MAX_PLANS]
    return (*fitting[: MAX_PLANS - 1], first)


def _down_to(lowest: PlanOutcome, front: tuple[PlanOutcome, ...]) -> tuple[PlanOutcome, ...]:
    """Choose the dearest plans of a front, with the one that needs least."""
    last = front[-MAX_PLANS:]
    return last if lowest in last else (*last[1:], lowest)


def _described(outcome: PlanOutcome, times: str) -> str:
    """Say what a plan changes, and what it moves."""
    moved = f"; {format_bytes(outcome.moved_bytes)} moved in a step" if outcome.moved_bytes else ""
    return describe_plan(outcome.plan, times) + moved


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


def _where(place: NamedPlace | None) -> str:
    if place is None:
        return "paste this where what it changes is made, before the first step:"
    return f"paste this after {place.after}, {place.code}"


def _excess_lines(report: PlanReport) -> Iterator[str]:
    """Say what to ask for if the measured peak is above the limit: kernels have scratch memory."""
    excess = excess_bytes(report)
    if excess is not None and excess > 0:
        enough = max(report.search.limit - excess, 1)
        what = f"{format_bytes(excess)} above the limit, because of what is not counted"
        yield f"{what}: ask for a plan that leaves room for it, --fit {enough}"


def _search_notes(report: PlanReport) -> Iterator[str]:
    """Say what was tried, and what was not: all of it only where nothing fits."""
    search = report.search
    if search.is_cut:
        yield f"{cut_sentence(report)}{_not_tried(report)}"
    elif not search.fitting:
        yield f"Tried: {_TRIED}.{_not_tried(report)}"
    elif search.fitting[0] != search.plain and report.stepping_refused:
        yield _not_tried(report).strip()
    if report.offloads:
        yield _OFFLOADED
    if not search.fitting:
        yield from filter(None, (states_sentence(report), fused_loss_sentence(report)))


def _not_tried(report: PlanReport) -> str:
    """Say what was not tried, and why; "" if that is nothing. Options are named only where nothing fits."""
    options = [] if report.splits or report.search.fitting else [_NOT_SPLIT]
    options += [] if report.offloads or report.search.fitting else [_NOT_OFFLOADED]
    steps = [f"steps inside backward: {report.stepping_refused}"] if report.stepping_refused else []
    return f" Not tried: {', '.join([*options, *steps])}." if options or steps else ""


def _range(seconds: tuple[float, float]) -> str:
    least, most = (f"{each:.3g}" for each in seconds)
    return f"{least} s" if least == most else f"{least} to {most} s"


def _trial_lines(trial: Trial) -> Iterator[str]:
    measured, plain = format_bytes(trial.measured_peak_bytes), format_bytes(trial.plain_peak_bytes)
    yield f"peak {measured} instead of {plain}, as the allocator reports"
    if trial.seconds is not None and trial.plain_seconds is not None:
        yield f"a step took {_range(trial.seconds)}, a plain one {_range(trial.plain_seconds)}, on this machine"
    compared = format_count(trial.num_compared, "parameter" if trial.is_of_parameters else "gradient")
    if trial.bit_equal:
        yield f"{compared} compared, all bit-equal to those of the plain run"
    elif not trial.num_compared:
        yield "gradients are not compared: the batches are not those of the plain run"
    elif trial.bit_equal is None:
        yield "gradients cannot be compared: two plain runs differ (set the seeds, use deterministic algorithms)"
    else:
        yield (
            f"{trial.num_different} of {compared} differ from those of the plain run, "
            f"all together by about {trial.difference:.1e} of their norm"
        )
