"""Prefer backward() to autograd.grad(), without knowing which of them the program will call.

The first autograd.grad() call is often a step inside something larger: a gradient penalty, a residual, an inner loop.
So its graph is recorded when it happens, as a frozen record that holds no tensor, and the program goes on. The first
backward() call then takes its place. A program that never gets there has the first autograd.grad() call to show.
"""

from collections.abc import Callable

from msgspec.structs import replace

from gradinspect.analyses.gradients.steps import GradientSteps
from gradinspect.analyses.gradients.timeline import Timeline
from gradinspect.graph import CaptureKind, Graph
from gradinspect.observers.graph_observer import GraphObserver
from gradinspect.record.outputs import OutputTensor
from gradinspect.record.variables import Variable
from gradinspect.runner.engine import EngineCall, Watch
from gradinspect.runner.run import Mode, Result, Run


class BackwardFirst:
    """Lets one observer look at backward() calls, and another at the autograd.grad() calls before the first of them."""

    def __init__(self, backward: Mode, grad: Mode) -> None:
        """Set up with two observers of the same kind, the second of which is not able to stop the program."""
        self.backward = backward
        self._grad: Mode | None = grad  # None: it is not needed any longer
        self._found: Result | None = None  # what it had seen until then
        self._grad_problem: Exception | None = None
        self._num_grads = 0

    @property
    def problem(self) -> Exception | None:
        """What went wrong with what is to be shown."""
        if self.backward.problem is not None or self.result() is not None:
            return self.backward.problem
        return self._grad_problem if self._grad is None else self._grad.problem

    def on_call(self, run: Run, call: EngineCall) -> Watch | None:
        """Let the observer of its kind look at a call."""
        if call.kind == "grad":
            self._num_grads = call.number
            return self._look_at_grad(run, call)
        self._dismiss_grad()
        return self.backward.on_call(run, call)

    def _look_at_grad(self, run: Run, call: EngineCall) -> Watch | None:
        """Look at a call whose result may never be wanted, so what goes wrong with it must not end the run."""
        if self._grad is None:
            return None
        try:
            return self._grad.on_call(run.provisional(), call)
        except Exception as error:
            self._grad_problem, self._grad = error, None
            return None

    def _dismiss_grad(self) -> None:
        """Look at autograd.grad() calls no longer; what was seen of them stands, should this backward fail."""
        if self._grad is not None:
            self._found, self._grad_problem = self._grad.result(), self._grad.problem
            self._grad = None

    def at_end(
        self, run: Run, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Record what a program has left, or a callable has returned."""
        if isinstance(self.backward, GraphObserver):
            self.backward.at_end(run, kind, outputs, variables)

    def result(self) -> Result | None:
        """Return what was seen of backward() calls; without one, of autograd.grad() calls."""
        found = self.backward.result()
        if found is not None:
            return found
        return _with_others(self._found if self._grad is None else self._grad.result(), self._num_grads - 1)


def _with_others(result: Result | None, num_others: int) -> Result | None:
    """Note how many calls of the same kind could have been shown."""
    if isinstance(result, Graph):
        return replace(result, captured_at=replace(result.captured_at, other_grads=num_others))
    if isinstance(result, Timeline | GradientSteps):
        return replace(result, graph=_with_others(result.graph, num_others))
    return result
