"""The interface of an observer, which looks at a run of the user's program to answer one question."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Generic, TypeAlias, TypeVar

from gradinspect.graph import CallKind, CaptureKind
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import OutputTensor
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.run import Run
from gradinspect.torch_api.patching.interruptions import pass_on_interruption

T = TypeVar("T")


class Observer(ABC, Generic[T]):
    """Is called for each backward call of a run, and returns its result in the end: a `T`.

    An observer is made with its `Run` before the program starts. `on_call` and `at_end` may raise: the session raises
    the error after the program, which never sees it.
    """

    needs_backward: ClassVar[bool] = (
        True  # False: the tensors that a program leaves without calling backward are accepted too
    )
    takes_any_call: ClassVar[bool] = False  # backward() is preferred, but autograd.grad() is accepted
    reports_missing_names: ClassVar[bool] = False  # its report says which private names this torch lacks
    reports_missed_calls: ClassVar[bool] = False  # its report says how many calls were not looked at
    keeps_trace: bool = False  # of the error that ends the program, for another process to show
    reports_before_failure: ClassVar[bool] = False  # its result explains the error that ends the program
    is_partial: bool = False  # the result so far would mislead if the program failed now
    has_left: bool = False  # everything requested was seen, and the program runs on unobserved
    problem: Exception | None = None  # an error of ours after `on_call` returned

    def failed(self, error: Exception) -> None:
        """Keep the first error of ours: the program goes on, and the session raises it in the end.

        Raises:
            Exception: This one, if the program sent it.
        """
        pass_on_interruption(error)
        self.problem = self.problem or error

    def attached(self) -> AbstractContextManager[object]:
        """Return the context in which the program runs."""
        return nullcontext()

    @property
    def wants_backward(self) -> bool:
        """Whether to run backward of what a callable returned, if it calls none itself."""
        return self.needs_backward

    @property
    def has_enough(self) -> bool:
        """Whether nothing more need run."""
        return self.has_left

    @abstractmethod
    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at a call that is about to start, and stop the program when enough was seen.

        Returns:
            What to do when the call has ended.
        """

    def missed(self, kind: CallKind) -> None:  # most observers need not know
        """Note a call that is not observed, because another thread makes it, or one runs at the same time."""

    def at_end(  # most observers need a call
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Look at the tensors left at the end of a program, or returned by a callable."""

    def ended_by(self, error: BaseException) -> None:  # most observers do not explain it
        """Note the error that ends the program, before the result is asked for."""

    def settle(self) -> None:  # most observers wait for nothing
        """Stop waiting for later events: the program has ended, or the report comes next."""

    @abstractmethod
    def result(self) -> T | None:
        """Return what was seen so far, None if nothing was. Changes nothing."""

    def has_result(self) -> bool:
        """Return whether anything was seen, for less than it takes to make the result."""
        return self.result() is not None

    def result_of_backward(self) -> T | None:
        """Return what was seen so far, unless a backward() call would replace it."""
        return self.result()

    def with_other_grads(self, result: T, number: int) -> T:  # noqa: ARG002  # of those that record a graph
        """Add to a result how many autograd.grad() calls could be shown instead."""
        return result


MakeObserver: TypeAlias = Callable[[Run], Observer[T]]
