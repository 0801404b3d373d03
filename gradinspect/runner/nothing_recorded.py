"""What to say when a run had nothing to record, and what to try."""

from typing import Any

from gradinspect.errors import GradInspectError
from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts
from gradinspect.runner.observer import Observer
from gradinspect.source import Expression
from gradinspect.units import call_name, format_count


def nothing_recorded(request: Request, observer: Observer[Any], counts: CallCounts) -> GradInspectError:
    """Say what was seen instead of a graph, and what to try."""
    if request.backward is not None:
        return _not_reached(request, call_name("backward", request.backward), counts)
    if request.grad is not None:
        return _not_reached(request, call_name("grad", request.grad), counts)
    if request.at != "end" and counts.grads and not counts.backwards and not observer.takes_any_call:
        return GradInspectError(
            f"'{request.label}' never calls backward(), but it calls autograd.grad() {_times(counts.grads)}.",
            "Choose one of these calls: --grad 1.",
        )
    if observer.needs_backward:
        return GradInspectError(
            f"'{request.label}' {_called(counts) or 'never calls backward'} in this process, so there is nothing to "
            "watch.",
            "Name a script that trains.",
        )
    if request.at == "backward":
        return GradInspectError(f"'{request.label}' has no backward call to record.", "Try --at end.")
    if isinstance(request.source, Expression):
        return GradInspectError(
            f"The output of '{request.label}' holds no tensor with a graph.",
            "Make it require grad, and do not run it under torch.no_grad().",
        )
    called = "keeps no tensor" if _called(counts) else "never calls backward in this process"
    return GradInspectError(
        f"'{request.label}' {called}, and no variable it leaves has a graph.",
        "Does it run under torch.no_grad(), or keep its tensors inside a function? Try script.py:expression.",
    )


def _not_reached(request: Request, wanted: str, counts: CallCounts) -> GradInspectError:
    return GradInspectError(
        f"'{request.label}' {_called(counts) or 'never called backward'}, so {wanted} was not reached.",
        "Give a smaller number to --backward or --grad, or use --at end.",
    )


def _called(counts: CallCounts) -> str:
    """Say what was called how often; "" where nothing was."""
    calls = ((counts.backwards, "backward"), (counts.grads, "autograd.grad"))
    called = " and ".join(f"{name} {_times(number)}" for number, name in calls if number)
    return f"called {called}" if called else ""


def _times(number: int) -> str:
    return format_count(number, "time")
