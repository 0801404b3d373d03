"""The error for a run in which nothing was recorded, with what to try."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradinspect.errors import GradInspectError
from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts
from gradinspect.runner.observer import Observer
from gradinspect.source import Expression
from gradinspect.torch_api.devices.graph_capture import INSIDE
from gradinspect.units import call_name, format_count

_IN_COMPILED = (
    "It runs code under torch.compile, in which torch.func.grad and the like compute gradients unseen: --eager runs it "
    "as it is written."
)


def hidden_by_errors(request: Request, counts: CallCounts, notes: Sequence[str]) -> GradInspectError | None:
    """Say that errors of ours have hidden all calls; None if there was none, or no call."""
    if not notes or not (counts.backwards or counts.grads):
        return None
    return GradInspectError(
        f"'{request.label}' {_called(counts)}, and gradinspect could look at none of these calls.",
        f"{' '.join(notes)} Please report it to its developers.",
    )


def nothing_recorded(
    request: Request, observer: Observer[Any], counts: CallCounts, models: Mapping[str, str], *, has_compiled: bool
) -> GradInspectError:
    """Say what the program did instead, and what to try."""
    if request.backward is not None:
        return _not_reached(request, call_name("backward", request.backward), counts)
    if request.grad is not None:
        return _not_reached(request, call_name("grad", request.grad), counts)
    if request.at != "end" and counts.grads and not counts.backwards and not observer.takes_any_call:
        return GradInspectError(
            f"'{request.label}' never calls backward(), but it calls autograd.grad() {_times(counts.grads)}.",
            "Choose one of these calls, for example with --grad 1.",
        )
    if isinstance(request.source, Expression) and not (counts.backwards or counts.grads):
        return GradInspectError(
            f"The output of '{request.label}' contains no tensor with a graph.",
            "Make its inputs or parameters require grad, and do not run it under torch.no_grad().",
        )
    if (models or has_compiled) and not (counts.backwards or counts.grads) and request.at is None:
        return _nothing_called(request, models, has_compiled=has_compiled)
    if observer.needs_backward:
        return GradInspectError(
            f"'{request.label}' {_called(counts) or 'never calls backward'} in this process, so there are no "
            "gradients to observe.",
            "Give a script that trains.",
        )
    if request.at == "backward":
        return GradInspectError(f"'{request.label}' has no backward call to record.", "Try --at end.")
    called = _called(counts) or "never calls backward in this process"
    return GradInspectError(
        f"'{request.label}' {called}, and none of its global variables has a graph.",
        "Does it run under torch.no_grad(), or only use tensors inside functions? Try script.py:expression.",
    )


def _nothing_called(request: Request, models: Mapping[str, str], *, has_compiled: bool) -> GradInspectError:
    if has_compiled:
        return GradInspectError(f"'{request.label}' never calls backward in this process.", _IN_COMPILED)
    return GradInspectError(
        f"'{request.label}' defines {_listed(tuple(models))}, and computes nothing with a graph.",
        f"Name what to call, and its input: '{request.label}:{tuple(models.values())[-1]}' --input 2x3x32x32.",
    )


def _not_reached(request: Request, wanted: str, counts: CallCounts) -> GradInspectError:
    return GradInspectError(
        f"'{request.label}' {_called(counts) or 'never called backward'}, so {wanted} was not reached.",
        "Give a smaller number to --backward or --grad, or use --at end.",
    )


def _called(counts: CallCounts) -> str:
    """Say what was called how often; "" if nothing was."""
    calls = ((counts.backwards, "backward"), (counts.grads, "autograd.grad"))
    called = " and ".join(f"{name} {_times(number)}" for number, name in calls if number)
    captured = f", {format_count(counts.captured, 'call')} of them {INSIDE}, where nothing is measured"
    return f"called {called}{captured if counts.captured else ''}" if called else ""


def _listed(names: Sequence[str]) -> str:
    """List at most three names."""
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def _times(number: int) -> str:
    return format_count(number, "time")
