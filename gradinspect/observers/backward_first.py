"""Prefer backward() to autograd.grad(), without knowing which of them the program will call.

The first autograd.grad() call is often a step inside something larger: a gradient penalty, a residual, an inner loop.
So its graph is recorded when it happens, as a frozen record that holds no tensor, and the program goes on. The first
backward() call then replaces it. A program that never gets there has the first autograd.grad() call to show.
"""

from collections.abc import Callable
from typing import TypeVar

from gradinspect.graph import CaptureKind
from gradinspect.record.outputs import OutputTensor
from gradinspect.record.variables import Variable
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import MakeObserver, Observer
from gradinspect.runner.run import Run

T = TypeVar("T")


def backward_first(run: Run, make: MakeObserver[T]) -> Observer[T]:
    """Make an observer of the requested call; where none is named, of the first backward() or autograd.grad()."""
    return BackwardFirst(run, make) if run.request.names_no_call else make(run)


class BackwardFirst(Observer[T]):
    """Lets one observer look at backward() calls, and another at the autograd.grad() calls before the first of them."""

    takes_any_call = True

    def __init__(self, run: Run, make: MakeObserver[T]) -> None:
        """Make both; that of autograd.grad() calls cannot stop the program."""
        self._backward = make(run)
        self._grad: Observer[T] | None = make(run.provisional())  # None: it is not needed any longer
        self._found: T | None = None  # what it had seen until then
        self._grad_problem: Exception | None = None
        self._num_grads = 0
        self.needs_backward = self._backward.needs_backward  # type: ignore[misc]  # as what it stands for
        self.reports_missing_names = self._backward.reports_missing_names  # type: ignore[misc]  # as above

    @property
    def problem(self) -> Exception | None:  # type: ignore[override]  # of two
        """What went wrong with what is to be shown."""
        if self._backward.problem is not None or self.result() is not None:
            return self._backward.problem
        return self._grad_problem if self._grad is None else self._grad.problem

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Let the observer of its kind look at a call."""
        if call.kind == "grad":
            self._num_grads = call.number
            return self._look_at_grad(call)
        self._dismiss_grad()
        return self._backward.on_call(call)

    def at_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Look at what a program has left, or a callable has returned."""
        self._backward.at_end(kind, outputs, variables)

    def settle(self) -> None:
        """Wait no longer."""
        self._backward.settle()
        if self._grad is not None:
            self._grad.settle()

    def result(self) -> T | None:
        """Return what was seen of backward() calls; without one, of autograd.grad() calls."""
        found = self._backward.result()
        if found is not None:
            return found
        found = self._found if self._grad is None else self._grad.result()
        return None if found is None else self._backward.with_other_grads(found, self._num_grads - 1)

    def result_of_backward(self) -> T | None:
        """Return what was seen of backward() calls alone."""
        return self._backward.result()

    def _look_at_grad(self, call: EngineCall) -> CallEnd | None:
        """Look at a call whose result may never be wanted, so what goes wrong with it must not end the run."""
        if self._grad is None:
            return None
        try:
            return self._grad.on_call(call)
        except Exception as error:
            self._grad_problem, self._grad = error, None
            return None

    def _dismiss_grad(self) -> None:
        """Look at autograd.grad() calls no longer; what was seen of them stands, should this backward fail."""
        if self._grad is not None:
            self._grad.settle()
            self._found, self._grad_problem = self._grad.result(), self._grad.problem
            self._grad = None
