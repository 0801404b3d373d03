"""Search for a plan, and try it."""

from gradinspect.analyses.planning.changes import NO_CHANGE, Plan
from gradinspect.analyses.planning.planned_steps import outcome_of
from gradinspect.analyses.planning.report import PlanReport
from gradinspect.analyses.planning.search import PlanSearch, blocks_of
from gradinspect.analyses.planning.trial import Trial, compare_gradients, seconds_of_a_step
from gradinspect.cli.running.planned_runs import PlannedRuns
from gradinspect.cli.running.sign_of_life import sign_of_life
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.request import Request
from gradinspect.units import escape_control

ROUNDS = 2  # of the plain program and the plan, in turns


def find_plan(request: Request, limit: int, num_steps: int, *, tries: bool, rounds: bool) -> PlanReport:
    """Search for plans that fit, and try the cheapest one with values if that was asked for.

    Raises:
        GradInspectError: The plain program cannot be watched.
        ScriptFailedError: It failed.
    """
    runs = PlannedRuns(request, num_steps)
    plain = runs.plain()
    with sign_of_life(f"plans of {escape_control(request.label)}"):
        search = PlanSearch(limit, blocks_of(plain.uses), plain.products, runs.measure, rounds=rounds)
        found = search.run(outcome_of(NO_CHANGE, plain), plain.offers, plain.chunked)
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
        roots=plain.roots,
        notes=plain.memory.notes,
        not_counted=plain.memory.not_counted,
        held=plain.held,
        trial=trial,
        failures=tuple(failures),
    )


def _try(runs: PlannedRuns, plan: Plan) -> Trial:
    """Run the plain program and the planned one with values."""
    plain_peak, peak = runs.real_memory(NO_CHANGE).memory.peak_bytes, runs.real_memory(plan).memory.peak_bytes
    rounds = [(runs.real_steps(NO_CHANGE), runs.real_steps(plan)) for _ in range(ROUNDS)]
    plain, planned = rounds[0]
    num_compared, num_different, largest = compare_gradients(plain, planned)
    is_repeatable = not compare_gradients(plain, rounds[1][0])[1]
    return Trial(
        plain_peak_bytes=plain_peak,
        measured_peak_bytes=peak,
        plain_seconds=seconds_of_a_step([each for each, _ in rounds]),
        seconds=seconds_of_a_step([each for _, each in rounds]),
        bit_equal=not num_different if is_repeatable else None,
        num_different=num_different,
        num_compared=num_compared,
        largest_difference=largest,
    )
