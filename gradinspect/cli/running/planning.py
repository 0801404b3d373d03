"""Search for a plan, and try it."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from gradinspect.analyses.planning.changes import (
    NO_CHANGE,
    Change,
    Plan,
    SplitBatch,
    describe_plan,
    is_exact,
    split_of,
    stepping_of,
)
from gradinspect.analyses.planning.estimate import Estimate, first_estimate
from gradinspect.analyses.planning.planned_steps import PlannedSteps, outcome_of
from gradinspect.analyses.planning.report import PlanReport
from gradinspect.analyses.planning.search import PlanOutcome, PlanSearch, TimeIsOver
from gradinspect.analyses.planning.trial import Trial, compare, seconds_of_a_step
from gradinspect.cli.output.printing import print_message
from gradinspect.cli.running.planned_runs import PlannedRuns
from gradinspect.cli.running.sign_of_life import sign_of_life
from gradinspect.cli.running.size_search import WholeSize, whole_size
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.renderers.terminal.text import cut_end, wrap
from gradinspect.request import Request
from gradinspect.units import escape_control, format_beside, format_count

_ALTERNATES = (
    "Smaller batches were not tried: the program has optimizers that step after backward calls of their own, so that "
    "gradients of one would be added to those of the other."
)
PROGRESS_S = 10.0  # between two lines about what was tried, unless a plan needs less than all before
MAX_COLUMNS = 80  # of a message about a plan
MAX_LINES = 4
ROUNDS = 2  # of the plain program and the plan, in turns


def find_plan(  # noqa: PLR0913  # one option for each kind of plan
    request: Request, limit: int, num_steps: int, *, budget: float, tries: bool, rounds: bool, split: str | None
) -> PlanReport:
    """Search for plans that fit, and try the cheapest one with values if that was asked for.

    Raises:
        GradInspectError: The plain program cannot be watched.
        ScriptFailedError: It failed.
    """
    begun = monotonic()
    size = None if split is None else whole_size(request, split)
    runs = PlannedRuns(request, num_steps, size)
    plain = runs.plain()
    as_it_is = outcome_of(NO_CHANGE, plain)
    first = first_estimate(as_it_is, plain.uses, limit)
    _tell(first, limit)
    with sign_of_life(f"plans of {escape_control(request.label)}"):
        search = PlanSearch(
            limit,
            plain.uses,
            plain.products,
            _telling(runs.measure, limit, begun, budget, lambda: runs.start_s),
            rounds=rounds,
            offloads=plain.can_offload,
        )
        try:
            run_whole = partial(runs.measure, whole=True)
            promising = () if first is None else (first.change,)
            found = search.run(as_it_is, plain.offers, _rounding(plain, size), run_whole, promising)
        finally:
            runs.close()
        trial, failures = None, list[str]()
        if tries and found.fitting:
            try:
                trial = _try(runs, found.fitting[0].plan)
            except (GradInspectError, ScriptFailedError) as error:
                failures.append(f"The plan could not be tried: {error}")
    return PlanReport(
        source=request.label,
        torch_version=plain.memory.torch_version,
        search=found,
        first=first,
        roots=plain.roots,
        notes=(
            *filter(None, (plain.memory.made_up, plain.memory.values_from)),
            *plain.memory.notes,
            *((_ALTERNATES,) if size is not None and plain.alternates else ()),
        ),
        not_counted=plain.memory.not_counted,
        held=plain.held,
        offloads=plain.can_offload,
        splits=size is not None,
        stepping_refused=plain.stepping_refused,
        other_states=plain.other_states,
        optimizer_names=plain.optimizer_names,
        trial=trial,
        failures=tuple(failures),
    )


def _tell(first: Estimate | None, limit: int) -> None:
    """Write at once what the plain steps already show; it is an estimate, and more runs follow."""
    if first is None:
        return
    verdict = "" if first.peak_bytes <= limit else ", too much"
    peak = format_beside(first.peak_bytes, limit)
    _print_line(f"first estimate, not run: {peak}{verdict}, {first.change.describe('x')}")


def _print_line(text: str) -> None:
    """Print a message in a few lines, of which the end gives way: a plan may name many modules."""
    told = cut_end(escape_control(text), MAX_LINES * MAX_COLUMNS, "...")
    for line in wrap(told, MAX_COLUMNS, subsequent_indent="  ", break_on_hyphens=False):
        print_message(line)


def _telling(
    measure: Callable[[Plan], PlanOutcome], limit: int, begun: float, budget: float, start_s: Callable[[], float]
) -> Callable[[Plan], PlanOutcome]:
    """Measure until the budget is spent; write the best so far: `tried 12 plans in 20 s, lowest peak 134.6 MiB`.

    The first plan that fits is written at once, so that one can go on with it.

    The first plan may still be run from the start at the end, which takes what the last start took: that is kept, and
    what the last plan took, as the next one may take as long.
    """
    told, lowest, took = monotonic(), sys.maxsize, 0.0
    done: list[PlanOutcome] = []

    def measured(plan: Plan) -> PlanOutcome:
        nonlocal told, lowest, took
        now = monotonic()
        if now - begun + (start_s() + took if done else 0.0) >= budget:
            raise TimeIsOver
        done.append(measure(plan))
        took = monotonic() - now
        peaks = [outcome.peak_bytes for outcome in done if not outcome.failure]
        number = sum(peak <= limit for peak in peaks)
        if number == 1 and not done[-1].failure and done[-1].peak_bytes <= limit:
            peak = format_beside(done[-1].peak_bytes, limit)
            rounded = "" if is_exact(plan) else "gradients not bit-equal, "
            _print_line(f"first that fits, run: {peak}, {rounded}{describe_plan(plan)}")
        least = min(peaks, default=lowest)
        if peaks and (least < lowest or monotonic() - told >= PROGRESS_S):
            told, lowest = monotonic(), least
            fits = f", {number} fit" if number else ""
            tried = f"tried {format_count(len(done), 'plan')} in {told - begun:.0f} s"
            print_message(f"{tried}{fits}, lowest peak {format_beside(least, limit)}")
        return done[-1]

    return measured


def _rounding(plain: PlannedSteps, size: WholeSize | None) -> list[Sequence[Change]]:
    """List what rounds otherwise: one change of each group is made."""
    return [() if plain.fused is None else (plain.fused,), plain.chunked, _splits(plain, size)]


def _splits(plain: PlannedSteps, size: WholeSize | None) -> list[SplitBatch]:
    """Offer to divide the batch into ever smaller ones of equal size."""
    if size is None or plain.alternates:
        return []
    parts = [2**power for power in range(1, size.number.bit_length()) if not size.number % 2**power]
    return [
        SplitBatch(
            name=size.name,
            size=size.number,
            parts=number,
            backward=plain.backward[0],
            code=plain.backward[1],
            keeps_statistics=any(use.keeps_statistics for use in plain.uses),
        )
        for number in parts
    ]


def _try(runs: PlannedRuns, plan: Plan) -> Trial:
    """Run the plain program and the planned one with values."""
    plain_peak, peak = runs.real_memory(NO_CHANGE).memory.peak_bytes, runs.real_memory(plan).memory.peak_bytes
    rounds = [(runs.real_steps(NO_CHANGE), runs.real_steps(plan)) for _ in range(ROUNDS)]
    steps_in_backward = stepping_of(plan) is not None
    plain, planned, again = (
        (one.parameters,) if steps_in_backward else one.gradients for one in (*rounds[0], rounds[1][0])
    )
    is_split = split_of(plan) is not None  # then batches differ from those of the plain run
    num_compared, num_different, difference = (0, 0, 0.0) if is_split else compare(plain, planned)
    is_repeatable = not is_split and not compare(plain, again)[1]
    return Trial(
        plain_peak_bytes=plain_peak,
        measured_peak_bytes=peak,
        plain_seconds=seconds_of_a_step([each for each, _ in rounds]),
        seconds=seconds_of_a_step([each for _, each in rounds]),
        bit_equal=not num_different if is_repeatable else None,
        num_different=num_different,
        num_compared=num_compared,
        is_of_parameters=steps_in_backward,
        difference=difference,
    )
