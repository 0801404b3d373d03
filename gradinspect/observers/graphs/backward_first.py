"""Prefer backward() to autograd.grad(), before knowing which of them the program will call.

The first autograd.grad() call is often a step inside something larger: a gradient penalty, a residual, an inner loop.
So its graph is recorded when it happens, as a frozen record that holds no tensor, and the program goes on. The first
backward() call then replaces it. If a program never calls backward(), the first autograd.grad() call is shown.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from gradinspect.graph import CaptureKind
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import OutputTensor
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import MakeObserver, Observer
from gradinspect.runner.run import Run

T = TypeVar("T")


def backward_first(run: Run, make: MakeObserver[T]) -> Observer[T]:
    """Make an observer of the requested call; by default, of the first backward() or autograd.grad().

    The first call that builds a graph of itself is the one to be shown with --create-graph, whatever its kind.
    """
    chooses = run.request.names_no_call and not run.request.creates_graph
    return BackwardFirst(run, make) if chooses else make(run)


class BackwardFirst(Observer[T]):
    """Passes backward() calls to one observer, and the autograd.grad() calls before the first of them to another."""

    takes_any_call = True

    def __init__(self, run: Run, make: MakeObserver[T]) -> None:
        """Make both; the one for autograd.grad() calls cannot stop the program."""
        self._backward = make(run)
        self._grad: Observer[T] | None = make(run.provisional())  # None: no longer needed
        self._found: T | None = None  # its result by then
        self._grad_problem: Exception | None = None
        self._num_grads = 0
        self.needs_backward = self._backward.needs_backward  # type: ignore[misc]  # same as the inner observer
        self.reports_missing_names = self._backward.reports_missing_names  # type: ignore[misc]  # as above

    @property
    def wants_backward(self) -> bool:
        """What the inner observer wants."""
        return self._backward.wants_backward

    @property
    def problem(self) -> Exception | None:  # type: ignore[override]  # of two observers
        """The error of the observer whose result is shown."""
        if self._backward.problem is not None or self.result() is not None:
            return self._backward.problem
        return self._grad_problem if self._grad is None else self._grad.problem

    def attached(self) -> AbstractContextManager[object]:
        """Run the program in the context of the observer of backward() calls."""
        return self._backward.attached()

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Pass a call to the observer of its kind."""
        if call.kind == "grad":
            self._num_grads = call.number
            return self._observe_grad(call)
        self._dismiss_grad()
        return self._backward.on_call(call)

    def at_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Look at the tensors left by a program, or returned by a callable."""
        self._backward.at_end(kind, outputs, variables)

    def settle(self) -> None:
        """Stop waiting."""
        self._backward.settle()
        if self._grad is not None:
            self._grad.settle()

    def result(self) -> T | None:
        """Return the result of backward() calls; without one, that of autograd.grad() calls."""
        found = self._backward.result()
        if found is not None:
            return found
        found = self._found if self._grad is None else self._grad.result()
        return None if found is None else self._backward.with_other_grads(found, self._num_grads - 1)

    def result_of_backward(self) -> T | None:
        """Return only the result of backward() calls."""
        return self._backward.result()

    def _observe_grad(self, call: EngineCall) -> CallEnd | None:
        """Observe a call whose result may not be needed, so an error of ours must not end the run."""
        if self._grad is None:
            return None
        try:
            return self._grad.on_call(call)
        except Exception as error:
            self._grad_problem, self._grad = error, None
            return None

    def _dismiss_grad(self) -> None:
        """Stop observing autograd.grad() calls, and keep their result in case this backward fails."""
        if self._grad is not None:
            self._grad.settle()
            self._found, self._grad_problem = self._grad.result(), self._grad.problem
            self._grad = None
