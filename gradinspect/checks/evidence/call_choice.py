"""Which calls of a program `check` observes; `watch_window` says when there were enough.

It counts backward() calls. The autograd.grad() calls before one belong to it: a gradient penalty, a residual, an inner
loop. A solver may make thousands of those, so only the first few are observed. A program that makes no other calls, for
example a sampler, is eventually stopped, because it could run for hours. Where an optimizer is to step yet, it may be
an evaluation before the training, and that is waited for longer.
"""

from collections.abc import Callable, Iterator

from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts, EngineCall

MAX_GRADS_OBSERVED = 16  # before each backward() call
MAX_GRADS_ALONE = 256  # without a backward() call between them
MAX_GRADS_BEFORE_STEPS = 5_000  # the same, while an optimizer has not stepped


class CallChoice:
    """Chooses calls as they come."""

    def __init__(self, request: Request) -> None:
        """Choose calls, starting with the requested one."""
        self.observed = CallCounts()
        self._first_grad = request.grad
        self._first_backward = request.backward or 1
        self._num_backwards = 0
        self._grads_in_a_row = 0
        self.has_given_up = False  # the program was left, because it made too many calls of autograd.grad()

    def is_exhausted(self, is_step_awaited: Callable[[], bool]) -> bool:
        """Return whether the program makes autograd.grad() calls only, and made too many.

        Args:
            is_step_awaited: Whether an optimizer exists that has not stepped; asked where that decides.
        """
        if self._first_grad is not None or self._grads_in_a_row < MAX_GRADS_ALONE:
            return False
        self.has_given_up = self._grads_in_a_row >= MAX_GRADS_BEFORE_STEPS or not is_step_awaited()
        return self.has_given_up

    def notes(self) -> Iterator[str]:
        """Say what is not known because of that."""
        if self.has_given_up:
            yield f"Not checked: what comes after {self._grads_in_a_row:,} autograd.grad() calls in a row."

    def counts(self, call: EngineCall) -> bool:
        """Return whether a call is of the kind that is counted."""
        return (call.kind == "grad") == (self._first_grad is not None)

    def wants(self, call: EngineCall) -> bool:
        """Return whether to observe a call that is about to start. Must be called once per call."""
        if call.kind == "backward":
            self._num_backwards, self._grads_in_a_row = call.number, 0
            return self._first_grad is None and call.number >= self._first_backward
        if self._first_grad is not None:
            return call.number >= self._first_grad
        self._grads_in_a_row += 1
        return self._grads_in_a_row <= MAX_GRADS_OBSERVED and self._num_backwards >= self._first_backward - 1
