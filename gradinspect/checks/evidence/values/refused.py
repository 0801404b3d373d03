"""Why a backward call has no graph."""

from collections.abc import Callable, Sequence

import torch
from msgspec.structs import replace
from torch import nn

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.missing_gradient import explained, names_of
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, FlowOutcome, Read, ancestors, flow_outcomes
from gradinspect.checks.facts.values import GradientTerm, LossWithoutGraph, MissingGradient, NoticedAt
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.engine import EngineCall

FrameOf = Callable[[int | None], Frame | None]


def loss_without_graph(
    flow: Dataflow, call: EngineCall, recorder: Recorder, frame_of: FrameOf
) -> LossWithoutGraph | GradientTerm | None:
    """Find what detached the outputs of a call, if one does not require grad."""
    output = next((one for one in call.outputs if isinstance(one, torch.Tensor) and not one.requires_grad), None)
    if output is None or flow.is_full:
        return None
    root = flow.read(output)
    backward = frame_of(recorder.frames.number_of(call.frame))
    made = None if root.call == OUTSIDE else frame_of(flow.calls[root.call].frame)
    loss = LossWithoutGraph(made=made, backward=backward)
    cuts = _cuts(flow, call, root, recorder, frame_of)
    if cuts:
        return replace(loss, detached=tuple(cuts))
    behind = sorted(ancestors(flow.calls, root.call))
    gradients = [flow.calls[number] for number in behind if flow.calls[number].cause == "gradient"]
    if gradients:
        last = gradients[-1]
        return GradientTerm(
            gradient=frame_of(last.frame), used=made, backward=backward, is_refused=True, is_attribute=last.is_attribute
        )
    frozen = _frozen_leaves(flow, behind)
    line = next((frame_of(flow.frozen[id(leaf)]) for leaf in frozen if id(leaf) in flow.frozen), None)
    return replace(loss, frozen=names_of(frozen, recorder, call.frame), frozen_at=line) if frozen else loss


def _cuts(flow: Dataflow, call: EngineCall, root: Read, recorder: Recorder, frame_of: FrameOf) -> list[MissingGradient]:
    alive = [(number, leaf) for number in range(len(flow.leaves)) if (leaf := flow.leaf(number)) is not None]
    alive = [(number, leaf) for number, leaf in alive if leaf.requires_grad]
    found = flow_outcomes(flow.calls, [Read(leaf=number) for number, _ in alive], root)
    group = nearest_cut(found, flow.calls)
    names = names_of([alive[place][1] for place in group], recorder, call.frame)
    backward = frame_of(recorder.frames.number_of(call.frame))
    noticed = NoticedAt(kind="backward", frame=backward)
    return [
        explained(
            flow,
            MissingGradient(name=name, kind="unread", noticed=noticed, backward=backward),
            found[place],
            frame_of,
        )
        for place, name in zip(group, names, strict=True)
    ]


def nearest_cut(found: Sequence[FlowOutcome], calls: Sequence[Call]) -> list[int]:
    """Choose the tensors that were detached by the same cause, nearest to the loss.

    Disabled gradients are one cause, on however many lines.
    """
    cut = [place for place, outcome in enumerate(found) if outcome.kind == "cut"]
    if not cut:
        return []
    seen = [place for place in cut if found[place].cause != "python"] or cut
    last = max((found[place] for place in seen), key=lambda outcome: outcome.cut or 0)
    if last.cause == "grad_off":
        return [place for place in seen if found[place].cause == "grad_off"]
    line = calls[last.cut or 0].frame
    return [place for place in seen if calls[found[place].cut or 0].frame == line]


def _frozen_leaves(flow: Dataflow, behind: list[int]) -> list[torch.Tensor]:
    """List the parameters of a loss that do not require grad."""
    numbers = dict.fromkeys(read.leaf for call in behind for read in flow.calls[call].reads if read.leaf != NO_LEAF)
    leaves = (flow.leaf(number) for number in numbers)
    return [leaf for leaf in leaves if isinstance(leaf, nn.Parameter) and not leaf.requires_grad]
