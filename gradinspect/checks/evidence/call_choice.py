"""Which calls of a program `check` observes; `watch_window` says when there were enough.

It counts backward() calls. The autograd.grad() calls before one belong to it: a gradient penalty, a residual, an inner
loop. A solver may make thousands of those, so only the first few are observed. A program that makes no other calls, for
example a sampler, is eventually stopped, because it could run for hours.
"""

from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts, EngineCall

MAX_GRADS_OBSERVED = 16  # before each backward() call
MAX_GRADS_ALONE = 256  # without a backward() call between them


class CallChoice:
    """Chooses calls as they come."""

    def __init__(self, request: Request) -> None:
        """Choose calls, starting with the requested one."""
        self.observed = CallCounts()
        self._first_grad = request.grad
        self._first_backward = request.backward or 1
        self._num_backwards = 0
        self._grads_in_a_row = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the program makes autograd.grad() calls only, and made too many."""
        return self._first_grad is None and self._grads_in_a_row >= MAX_GRADS_ALONE

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
