"""Everything that was found out about the plans for one program."""

from collections.abc import Iterable
from textwrap import indent
from typing import NamedTuple

from gradinspect.analyses.memory.step import KIND_NAMES, Origin, is_accelerator, moment_name
from gradinspect.analyses.planning.changes import ChunkLoss, HeldVariable, NamedPlace, stepping_of
from gradinspect.analyses.planning.code import STEP_IN_BACKWARD, code_of, stepping_code
from gradinspect.analyses.planning.estimate import Estimate
from gradinspect.analyses.planning.other_states import OtherState
from gradinspect.analyses.planning.search import FoundPlans, PlanOutcome
from gradinspect.analyses.planning.trial import Trial
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.graph import Record
from gradinspect.units import format_beside, format_bytes, format_count

MIN_SHARE_OF_STATE = 0.05  # of the lowest peak, for other optimizers to be named


class PlanReport(Record, frozen=True):
    """The outcome of a search, and of the trial of its cheapest plan."""

    source: str
    torch_version: str
    search: FoundPlans
    roots: tuple[NamedPlace, ...]
    notes: tuple[str, ...]
    not_counted: tuple[str, ...]
    trial: Trial | None = None  # of the cheapest plan that fits
    first: Estimate | None = None  # from the plain steps
    held: tuple[HeldVariable, ...] = ()
    failures: tuple[str, ...] = ()
    offloads: bool = False  # the program has a device of its own
    splits: bool = False  # smaller batches may be tried
    other_states: tuple[OtherState, ...] = ()
    optimizer_names: tuple[str, ...] = ()
    stepping_refused: str = ""  # why optimizers cannot step inside backward

    @property
    def fits(self) -> bool:
        """Whether a plan fits; if the cheapest one was tried, what was measured counts."""
        excess = excess_bytes(self)
        return bool(self.search.fitting) and (excess is None or excess <= 0)


def excess_bytes(report: PlanReport) -> int | None:
    """Return by how much the measured peak of the cheapest plan is above the limit; None if it was not measured."""
    return None if report.trial is None else report.trial.measured_peak_bytes - report.search.limit


def flops_ratio(outcome: PlanOutcome, plain: PlanOutcome) -> float | None:
    """Return how much more there is to compute; None if nothing that is counted was computed."""
    return outcome.flops / plain.flops if plain.flops else None


class Paste(NamedTuple):
    """Code, and the place after which it is pasted; None: it is not known."""

    place: NamedPlace | None
    code: str


def modules_paste(report: PlanReport, outcome: PlanOutcome) -> Paste:
    """Write the code that changes modules; "" if a plan changes none."""
    return _paste(code_of(outcome.plan, tuple(root.name for root in report.roots)), report.roots)


def optimizers_paste(outcome: PlanOutcome) -> Paste:
    """Write the code that changes optimizers; "" if a plan changes none."""
    stepping = stepping_of(outcome.plan)
    if stepping is None:
        return Paste(None, "")
    calls = [f"{STEP_IN_BACKWARD}({optimizer.name})\n" for optimizer in stepping.optimizers]
    return _paste("\n\n".join((stepping_code(), "".join(calls))), stepping.optimizers)


def _paste(code: str, places: Iterable[NamedPlace]) -> Paste:
    """Paste after the line after which all of some modules or optimizers are made."""
    known = [place for place in places if place.after]
    place = max(known, key=lambda place: int(place.after.rpartition(":")[2]), default=None)
    return Paste(place, indent(code, " " * (0 if place is None else place.indent)))


def held_sentence(held: HeldVariable) -> str:
    """Say what a variable holds that cannot be deleted, as it is read again."""
    what = f"At the peak, {held.name} holds {format_bytes(held.num_bytes)} of earlier steps"
    tensors = "a tensor" if held.num_storages == 1 else format_count(held.num_storages, "tensor")
    return f"{what} ({tensors}, {held.place}), not tried: keep numbers, or copies on another device."


def peak_of(outcome: PlanOutcome, limit: int) -> str:
    """Write a peak, and the accelerator where it is: another one may be the fullest under a plan."""
    where = f" on {outcome.on}" if is_accelerator(outcome.on) else ""
    return f"{format_beside(outcome.peak_bytes, limit)}{where}"


def lowest_sentence(report: PlanReport) -> str:
    """Say how far plans can go, and what stands in the way."""
    lowest = report.search.lowest
    peak = peak_of(lowest, report.search.limit)
    limit = format_beside(report.search.limit, lowest.peak_bytes)
    what = "" if lowest.at is None else f": {describe_moment(lowest.at, lowest.model_name)}"
    if not report.search.is_cut:
        return f"No plan tried goes below {peak}, the limit is {limit}{what}."
    return f"No plan was found in time; the lowest peak is {peak}, the limit is {limit}{what}."


def floor_sentence(outcome: PlanOutcome) -> str:
    """Say what is there at the peak of a plan, the largest first, and which operator made most; "" if not known."""
    parts = sorted(outcome.alive.items(), key=lambda part: -part[1])
    listed = ", ".join(f"{KIND_NAMES[kind]} {format_bytes(num_bytes)}" for kind, num_bytes in parts)
    return f"At that moment there are: {listed}.{_largest_sentence(outcome)}" if listed else ""


def _largest_sentence(outcome: PlanOutcome) -> str:
    """Name the largest tensor that the step has made: what no checkpoint takes away, smaller pieces would."""
    if outcome.largest is None:
        return ""
    made = outcome.largest.made
    where = f", {made.line}" if made.line else ""
    return f" The largest tensor of the step: {format_bytes(outcome.largest.num_bytes)}, made by {made.op}{where}."


def states_sentence(report: PlanReport) -> str:
    """Say what other optimizers would hold where the state of this one is much of what stands in the way; or ""."""
    lowest = report.search.lowest
    state = lowest.alive.get("optimizer_state", 0)
    smaller = [one for one in report.other_states if one.num_bytes < state]
    if not smaller or state < MIN_SHARE_OF_STATE * lowest.peak_bytes:
        return ""
    listed = ", ".join(f"{one.optimizer} {format_bytes(one.num_bytes)}" for one in smaller)
    names = " and ".join(report.optimizer_names)
    return f"An estimate, not run: instead of the {format_bytes(state)} of {names}, {listed}; they train otherwise."


def fused_loss_sentence(report: PlanReport) -> str:
    """Name packages that compute a loss without its logits, where chunks of them were tried; or ""."""
    search = report.search
    tried = [
        outcome.peak_bytes
        for outcome in (*search.fitting, *search.front, search.lowest)
        if any(isinstance(change, ChunkLoss) for change in outcome.plan.changes)
    ]
    if not tried:
        return ""
    return (
        "On CUDA, LigerFusedLinearCrossEntropyLoss (liger-kernel) and linear_cross_entropy (cut-cross-entropy) need "
        f"about as little in one kernel: {format_beside(min(tried), search.limit)}, an estimate, not run."
    )


def cut_sentence(report: PlanReport) -> str:
    """Say that the search was ended by its budget; if before any plan, what the plain steps lead to expect."""
    tried = format_count(report.search.num_runs - 1, "plan")
    cut = f"{tried} tried in the time that --budget gives: with more, a better one may be found."
    if report.search.num_runs > 1 or report.first is None:
        return cut
    peak = format_beside(report.first.peak_bytes, report.search.limit)
    return f"{cut} An estimate, not run: {peak} with a change, {report.first.change.describe('x')}."


def describe_moment(at: Origin, model: str) -> str:
    """Name what ran at the peak, and its line: `the gradient of lm_head, model.py:88`."""
    module = at.module and shown_path(at.module, model)
    if at.phase == "backward" and at.node:
        what = f"the gradient of {module or at.node.rpartition('Backward')[0] or 'a parameter'}"
    elif at.phase == "forward" and module:
        what = f"the forward of {module}"
    else:
        what = moment_name(at)
    return f"{what}, {at.line}" if at.line else what
