"""What to run, when to look, and what to say when there was nothing to see."""

from dataclasses import dataclass
from typing import Literal

from gradinspect.capture.lockstep import Watcher
from gradinspect.capture.own_backward import GradOutput
from gradinspect.capture.source import Expression, InputSpec, Module, Script
from gradinspect.errors import GradInspectError
from gradinspect.units import format_count


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to run, and when to look."""

    source: Script | Module | Expression
    label: str  # the source as the user wrote it
    arguments: tuple[str, ...] = ()
    inputs: tuple[InputSpec, ...] = ()
    backward: int | None = None  # which engine call; None: the first, or the end if there is none
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
    def lets_run(self) -> bool:
        """Whether the backward call that was asked for is let run."""
        return self.gradients or self.times or self.checks is not None


def nothing_recorded(request: Request, num_calls: int) -> GradInspectError:
    """Say what was seen instead of a graph, and what to try."""
    if request.backward is not None:
        seen = f"called backward {format_count(num_calls, 'time')}" if num_calls else "never called backward"
        return GradInspectError(
            f"'{request.label}' {seen}, so backward #{request.backward} was not reached.",
            "Give a smaller --backward, or --at end.",
        )
    if request.iterations is not None or request.lets_run:
        return GradInspectError(
            f"'{request.label}' never calls backward in this process, so there is nothing to watch.",
            "Name a script that trains.",
        )
    if num_calls and request.at == "backward":
        return GradInspectError(f"'{request.label}' has no backward call to record.", "Try --at end.")
    if isinstance(request.source, Expression):
        return GradInspectError(
            f"The output of '{request.label}' holds no tensor with a graph.",
            "Make it require grad, and do not run it under torch.no_grad().",
        )
    called = "never calls backward in this process" if num_calls == 0 else "keeps no tensor"
    return GradInspectError(
        f"'{request.label}' {called}, and no variable it leaves has a graph.",
        "Does it run under torch.no_grad(), or keep its tensors inside a function? Try script.py:expression.",
    )
