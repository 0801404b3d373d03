"""Which calls of a program `check` watches.

It counts backward() calls. The autograd.grad() calls on the way to one belong to it: a gradient penalty, a residual, an
inner loop. A solver may make thousands of those, so only the first few are looked at, and a program that makes nothing
else is stopped in the end: it is a sampler, or something like it, and would run on for hours under a watch.
"""

from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts, EngineCall

MAX_GRADS_WATCHED = 16  # before each backward() call
MAX_GRADS_ALONE = 256  # without a backward() call between them


class CallChoice:
    """Chooses calls as they come."""

    def __init__(self, request: Request, num_calls: int) -> None:
        """Choose so many calls, from the requested one on."""
        self.watched = CallCounts()
        self._asked = num_calls
        self._first_grad = request.grad
        self._first_backward = request.backward or 1
        self._num_backwards = 0
        self._grads_in_a_row = 0

    @property
    def is_done(self) -> bool:
        """Whether no further call is to be watched."""
        if self._first_grad is not None:
            return self.watched.grads >= self._asked
        return self.watched.backwards >= self._asked or self._grads_in_a_row >= MAX_GRADS_ALONE

    def wants(self, call: EngineCall) -> bool:
        """Tell whether to look at a call that is about to begin. Ask once for each call."""
        if call.kind == "backward":
            self._num_backwards, self._grads_in_a_row = call.number, 0
            return self._first_grad is None and call.number >= self._first_backward
        if self._first_grad is not None:
            return call.number >= self._first_grad
        self._grads_in_a_row += 1
        return self._grads_in_a_row <= MAX_GRADS_WATCHED and self._num_backwards >= self._first_backward - 1
