"""Build the record of a tensor that no gradient reaches, with names and lines."""

from collections.abc import Callable, Sequence
from types import FrameType

import torch
from msgspec.structs import replace

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.value_flow import FlowOutcome, Read, flow_outcomes
from gradinspect.checks.facts.values import MissingGradient
from gradinspect.checks.findings import caller_of_helper, line_that_names
from gradinspect.checks.rewriting import assigned_names, read_names
from gradinspect.graph import Frame
from gradinspect.recording.names.names import collect_names
from gradinspect.recording.names.variables import variables_from
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.tensors import is_leaf

UNNAMED = "an unnamed tensor"
FrameOf = Callable[[int | None], Frame | None]


def names_of(tensors: Sequence[torch.Tensor], recorder: Recorder, frame: FrameType | None) -> list[str]:
    """Name tensors as visible in this frame."""
    variables = list(variables_from(frame, outermost_first=True))
    names = collect_names([tensor for tensor in tensors if is_leaf(tensor)], recorder.called_modules(), variables)
    by_variable = {id(value): name for name, value in reversed(variables)}
    return [
        names.of_leaf(tensor).name or by_variable.get(id(tensor)) or f"{UNNAMED} {list(tensor.shape)}"
        for tensor in tensors
    ]


def outcomes_of(flow: Dataflow, starts: Sequence[Read], roots: Sequence[Read]) -> list[FlowOutcome]:
    """Find why no gradient reaches each start: where it was detached, trying the last root first."""
    found: dict[int, FlowOutcome] = {}
    for root in reversed(roots):
        left = [place for place in range(len(starts)) if place not in found or found[place].kind != "cut"]
        if not left:
            break
        for place, outcome in zip(
            left, flow_outcomes(flow.calls, [starts[place] for place in left], root), strict=True
        ):
            if outcome.kind == "cut" or place not in found:
                found[place] = outcome
    return [found[place] for place in range(len(starts))]


def explained(flow: Dataflow, missing: MissingGradient, outcome: FlowOutcome, frame_of: FrameOf) -> MissingGradient:
    """Add why no gradient reaches a tensor."""
    outcome = outcome._replace(cut=_exit(flow, outcome, frame_of))

    def line(call: int | None) -> Frame | None:
        return None if call is None else frame_of(flow.calls[call].frame)

    def caller(call: int | None) -> Frame | None:
        frame = line(call)
        return None if call is None else caller_of_helper(frame, frame_of(flow.caller_of(call)), missing.backward)

    cut, called = line_that_names(line(outcome.cut), caller(outcome.cut))
    off = None
    if outcome.cause == "grad_off" and outcome.cut is not None:
        off = frame_of(flow.switched_off_at(outcome.cut))
    elif outcome.cause == "checkpoint" and outcome.cut is not None:
        off = frame_of(flow.checkpointed_at(outcome.cut))
    lost = flow.replaced_at(outcome.cut) if outcome.kind == "unused" and outcome.cut is not None else None
    return replace(
        missing,
        variable="" if lost is None else lost.name,
        assigned=None if lost is None else frame_of(lost.assigned),
        replaced=None if lost is None else frame_of(lost.replaced),
        kind=outcome.kind,
        cause=outcome.cause,
        op="" if outcome.cut is None else flow.calls[outcome.cut].name,
        num_read=1 if outcome.cut is None else len(flow.calls[outcome.cut].reads),
        path=tuple(flow.calls[call].name for call in outcome.path),
        read=line(outcome.first),
        cut=cut,
        called=called if outcome.kind == "cut" else None,
        off=off,
        forced=frame_of(flow.forced.get(outcome.into)),
        used=line(outcome.used),
        made=missing.made if outcome.kind == "unread" else None,
    )


def _exit(flow: Dataflow, outcome: FlowOutcome, frame_of: FrameOf) -> int | None:
    """Choose the call that took a value to Python for the line that made a tensor of it, rather than to print it."""
    if len(outcome.exits) < 2 or outcome.used is None:
        return outcome.cut
    used = frame_of(flow.calls[outcome.used].frame)
    names = set() if used is None else read_names(used.code)
    lines = [(call, frame_of(flow.calls[call].frame)) for call in outcome.exits]
    for call, line in reversed(lines):
        if line is not None and used is not None and (line == used or names.intersection(assigned_names(line.code))):
            return call
    silent = [call for call, line in lines if line is None or not line.code.startswith("print(")]
    return next(iter(silent), outcome.cut)
