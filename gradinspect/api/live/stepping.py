"""Call a training step that the caller gives."""

from collections.abc import Callable
from typing import Any

from gradinspect.api.live.session import LiveSession
from gradinspect.errors import GradInspectError
from gradinspect.recording.outputs import outputs_in
from gradinspect.runner.callables.output_loss import run_backward


def name_of_step(step: Callable[[], object]) -> str:
    """Name a step as its author does."""
    return str(getattr(step, "__qualname__", type(step).__name__)).rpartition("<locals>.")[2]


def no_backward(name: str) -> GradInspectError:
    """Make the error for a step that has no backward."""
    return GradInspectError(
        f"'{name}' calls no backward, and returns no tensor with a graph.", "Call backward() in it, or return the loss."
    )


def call_step(session: LiveSession[Any], step: Callable[[], object]) -> bool:
    """Call a step once; if it calls no backward but returns something with a graph, run the backward of its sum.

    Returns:
        Whether there was a backward.
    """
    counts = session.run.interceptor.counts
    before = counts.backwards + counts.grads
    value = session.call(step)
    if counts.backwards + counts.grads == before:
        if not outputs_in(value):
            return False
        run_backward(value, None)
    return True
