"""What a plan saves and costs, what its trial has shown, and what was not tried: sentences for the terminal."""

from collections.abc import Iterator

from gradinspect.analyses.memory.step import FRAGMENTS, SCRATCH
from gradinspect.analyses.planning.changes import rounding_of
from gradinspect.analyses.planning.report import (
    PlanReport,
    cut_sentence,
    excess_bytes,
    flops_ratio,
    fused_loss_sentence,
    held_sentence,
    states_sentence,
)
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.analyses.planning.trial import Trial
from gradinspect.units import format_bytes, format_count

_OFFLOADED = "What modules save was also offloaded to the CPU: a run on the device shows what the moves cost."
_NOT_SPLIT = "--split NAME"
_NOT_OFFLOADED = "--device cuda"
_SHORT = {SCRATCH: "scratch memory of some kernels", FRAGMENTS: "fragmentation"}
_OF_RANKS = "buffers of NCCL"  # a plan is for one process
_ROUNDING = (  # by `rounding_of`
    "gradients stay bit-equal",
    "gradients are rounded otherwise",
    "gradients change: what is saved is rounded to bfloat16",
    "outputs and gradients change: products are made in bfloat16",
)


def saving(plain: PlanOutcome, outcome: PlanOutcome) -> str:
    """Say how much is saved at the peak, and when backward begins."""
    saved = plain.peak_bytes - outcome.peak_bytes
    less = plain.backward_bytes - outcome.backward_bytes
    share = f", {saved / plain.peak_bytes:.0%}" if plain.peak_bytes else ""
    begins = f"; {format_bytes(less)} less is alive as backward begins" if less > 0 else ""
    return f"{format_bytes(saved)} of the peak{share}{begins}"


def cost(plain: PlanOutcome, outcome: PlanOutcome) -> str:
    """Say how much more is computed and moved, and how gradients change."""
    ratio = flops_ratio(outcome, plain)
    more = 0 if ratio is None else round(100 * (ratio - 1))
    work = "" if ratio is None else f"{more}% more FLOPs" if more > 0 else "no more FLOPs"
    return "; ".join(filter(None, (work, moving(outcome), _ROUNDING[rounding_of(outcome.plan)])))


def moving(outcome: PlanOutcome) -> str:
    """Say what is moved to the CPU and back; "" if nothing is."""
    return f"{format_bytes(outcome.moved_bytes)} moved in a step" if outcome.moved_bytes else ""


def notes_of(report: PlanReport) -> Iterator[str]:
    """Say what was not tried, and what the figures leave out."""
    if report.search.fitting:
        yield from search_notes(report)
    yield from report.search.refused
    yield from map(held_sentence, report.held)
    not_counted = [_SHORT.get(what, what) for what in report.not_counted if what != _OF_RANKS]
    if report.search.fitting and not_counted:  # else it would come on top
        yield f"Not counted: {', '.join(not_counted)}."


def excess_lines(report: PlanReport) -> Iterator[str]:
    """Say what to ask for if the measured peak is above the limit: kernels have scratch memory."""
    excess = excess_bytes(report)
    if excess is not None and excess > 0:
        enough = max(report.search.limit - excess, 1)
        what = f"{format_bytes(excess)} above the limit, because of what is not counted"
        yield f"{what}: ask for a plan that leaves room for it, --fit {enough}"


def search_notes(report: PlanReport) -> Iterator[str]:
    """Say what was tried, and what was not: all of it only where nothing fits."""
    search = report.search
    if search.is_cut:
        yield f"{cut_sentence(report)}{_not_tried(report)}"
    elif not search.fitting:
        tried = f"Tried: {', '.join(search.tried)}." if search.tried else "There was nothing to try."
        yield f"{tried}{_not_tried(report)}"
    elif search.fitting[0] != search.plain and report.stepping_refused:
        yield _not_tried(report).strip()
    if report.offloads:
        yield _OFFLOADED
    if not search.fitting:
        yield from filter(None, (states_sentence(report), fused_loss_sentence(report)))


def _not_tried(report: PlanReport) -> str:
    """Say what was not tried, and why; "" if everything was. Options are named only where nothing fits."""
    options = [] if report.splits or report.search.fitting else [_NOT_SPLIT]
    options += [] if report.offloads or report.search.fitting else [_NOT_OFFLOADED]
    steps = [f"steps inside backward: {report.stepping_refused}"] if report.stepping_refused else []
    return f" Not tried: {', '.join([*options, *steps])}." if options or steps else ""


def _range(seconds: tuple[float, float]) -> str:
    least, most = (f"{each:.3g}" for each in seconds)
    return f"{least} s" if least == most else f"{least} to {most} s"


def trial_lines(trial: Trial) -> Iterator[str]:
    """Say what a run with values has shown."""
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
