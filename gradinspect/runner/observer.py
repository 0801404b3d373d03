"""What looks at a run of the user's program: one observer for each question."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Generic, TypeAlias, TypeVar

from gradinspect.graph import CaptureKind
from gradinspect.record.outputs import OutputTensor
from gradinspect.record.variables import Variable
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.run import Run

T = TypeVar("T")


class Observer(ABC, Generic[T]):
    """Is told of each backward call of a run, and knows in the end what was seen: a `T`.

    An observer is made with its `Run` before the program starts. `on_call` and `at_end` may raise: the session keeps
    the error for after the program, which never sees it.
    """

    needs_backward: ClassVar[bool] = True  # False: what a program leaves without calling backward will do too
    takes_any_call: ClassVar[bool] = False  # a backward() is preferred, but an autograd.grad() will do
    reports_missing_names: ClassVar[bool] = False  # its report says itself what this torch does not give
    reports_before_failure: ClassVar[bool] = False  # its result explains the error that ends the program
    has_left: bool = False  # as much was seen as was asked for, and the program goes on unobserved
    problem: Exception | None = None  # what went wrong with us after a call was looked at

    def attached(self) -> AbstractContextManager[object]:
        """Return what to hold while the program runs."""
        return nullcontext()

    @abstractmethod
    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at a call that is about to begin, and stop the program when enough was seen.

        Returns:
            What to do when the call has ended.
        """

    def at_end(  # most observers need a call
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Look at the tensors that a program has left, or that a callable has returned."""

    def settle(self) -> None:  # most observers wait for nothing
        """Wait no longer: the program has ended, or is about to be reported."""

    @abstractmethod
    def result(self) -> T | None:
        """Return what was seen so far, None when nothing was. Asks, and changes nothing."""

    def result_of_backward(self) -> T | None:
        """Return what was seen so far, unless a backward() call would replace it."""
        return self.result()

    def with_other_grads(self, result: T, number: int) -> T:  # noqa: ARG002  # of those that record a graph
        """Note in a result how many autograd.grad() calls could have been shown in place of it."""
        return result


MakeObserver: TypeAlias = Callable[[Run], Observer[T]]
