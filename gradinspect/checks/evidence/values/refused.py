"""Why a backward call has no graph."""

from collections.abc import Callable, Iterator

import torch
from torch import nn

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.missing_gradient import missing_gradient, names_of
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Read, ancestors, flow_outcomes
from gradinspect.checks.facts.values import MissingGradient, NoticedAt
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.flow.gradient_terms import lost_term_finding
from gradinspect.checks.rules.flow.loss_without_graph import frozen_finding, nearest_cut, refused_finding
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.engine import EngineCall

FrameOf = Callable[[int | None], Frame | None]


def refused_findings(flow: Dataflow, call: EngineCall, recorder: Recorder, frame_of: FrameOf) -> Iterator[Finding]:
    """Find what detached the outputs of a call, or say that nothing requires grad."""
    output = next((one for one in call.outputs if isinstance(one, torch.Tensor) and not one.requires_grad), None)
    if output is None or flow.is_full:
        return
    root = flow.read(output)
    backward = frame_of(recorder.frames.number_of(call.frame))
    made = None if root.call == OUTSIDE else frame_of(flow.calls[root.call].frame)
    cuts = _cuts(flow, call, root, recorder, frame_of)
    behind = sorted(ancestors(flow.calls, root.call))
    gradients = [number for number in behind if flow.calls[number].cause == "gradient"]
    frozen = _frozen_leaves(flow, behind)
    if cuts:
        yield refused_finding(cuts, made, backward)
    elif gradients:
        last = flow.calls[gradients[-1]]
        line = frame_of(last.frame)
        yield lost_term_finding(line, made, backward, is_refused=True, is_attribute=last.is_attribute)
    elif frozen:
        line = next((frame_of(flow.frozen[id(leaf)]) for leaf in frozen if id(leaf) in flow.frozen), None)
        yield frozen_finding(names_of(frozen, recorder, call.frame), line, made, backward)
    else:
        yield refused_finding((), made, backward)


def _cuts(flow: Dataflow, call: EngineCall, root: Read, recorder: Recorder, frame_of: FrameOf) -> list[MissingGradient]:
    alive = [(number, leaf) for number in range(len(flow.leaves)) if (leaf := flow.leaf(number)) is not None]
    alive = [(number, leaf) for number, leaf in alive if leaf.requires_grad]
    found = flow_outcomes(flow.calls, [Read(leaf=number) for number, _ in alive], root)
    group = nearest_cut(found, flow.calls)
    names = names_of([alive[place][1] for place in group], recorder, call.frame)
    backward = frame_of(recorder.frames.number_of(call.frame))
    noticed = NoticedAt(kind="backward", frame=backward)
    return [
        missing_gradient(flow, name, found[place], noticed, backward, frame_of)
        for place, name in zip(group, names, strict=True)
    ]


def _frozen_leaves(flow: Dataflow, behind: list[int]) -> list[torch.Tensor]:
    """List the parameters of a loss that do not require grad."""
    numbers = dict.fromkeys(read.leaf for call in behind for read in flow.calls[call].reads if read.leaf != NO_LEAF)
    leaves = (flow.leaf(number) for number in numbers)
    return [leaf for leaf in leaves if isinstance(leaf, nn.Parameter) and not leaf.requires_grad]
