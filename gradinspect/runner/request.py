"""What to run, when to look, and what to say when there was nothing to see."""

from dataclasses import dataclass
from typing import Literal

from gradinspect.errors import GradInspectError
from gradinspect.observers.lockstep import Watcher
from gradinspect.observers.synthetic_backward import GradOutput
from gradinspect.runner.engine import CallCounts
from gradinspect.source import Expression, InputSpec, Module, Script
from gradinspect.units import call_name, format_count


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to run, and when to look."""

    source: Script | Module | Expression
    label: str  # the source as the user wrote it
    arguments: tuple[str, ...] = ()
    inputs: tuple[InputSpec, ...] = ()
    backward: int | None = None  # which backward() call; None: the first
    grad: int | None = None  # which autograd.grad() call instead
    at: Literal["backward", "end", "call"] | None = None
    goes_on: bool = False  # let the program finish
    root: str | None = None  # name of the tensor to start from
    quiet: bool = False
    fake: bool = False  # run on fake tensors
    device: str | None = None  # of fake tensors for which the program names none
    gradients: bool = False  # let the engine run, and watch the gradients
    steps: int | None = None  # watch the gradients of so many backward calls in a row
    checks: int | None = None  # look for what is wrong in so many backward calls
    gradcheck: bool = False  # and check the backward of custom Functions by differences
    times: bool = False  # let the engine run, and time each node
    creates_graph: bool = False  # look at the graph that backward itself builds
    watcher: Watcher | None = None  # let the engine run, and tell of each step
    grad_output: GradOutput | None = None  # where no engine call was seen: the gradient to step from
    iterations: int | None = None  # watch how the graph grows over so many backward calls, instead of recording one

    @property
    def takes_any_call(self) -> bool:
        """Whether the user named no call: the first backward() then, or the first autograd.grad() where there is none.

        To step through a call, or to build its second graph, it has to run at once: it cannot be chosen later.
        """
        is_open = self.backward is None and self.grad is None and self.at in (None, "backward")
        return is_open and self.watcher is None and not self.creates_graph

    @property
    def lets_run(self) -> bool:
        """Whether the backward call that was asked for is let run."""
        return self.gradients or self.times or self.checks is not None


def nothing_recorded(request: Request, counts: CallCounts) -> GradInspectError:
    """Say what was seen instead of a graph, and what to try."""
    if request.backward is not None:
        return _not_reached(request, call_name("backward", request.backward), counts)
    if request.grad is not None:
        return _not_reached(request, call_name("grad", request.grad), counts)
    if request.at != "end" and counts.grads and not counts.backwards and not request.takes_any_call:
        return GradInspectError(
            f"'{request.label}' never calls backward(), but it calls autograd.grad() {_times(counts.grads)}.",
            "Choose one of these calls: --grad 1.",
        )
    if request.iterations is not None or request.lets_run:
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
