"""Time the nodes of one backward call while the engine runs them."""

from msgspec.structs import replace

from gradinspect.analyses.gradients.timeline import Timeline
from gradinspect.graph import with_other_grads
from gradinspect.observers.gradients.timing import NodeTimer
from gradinspect.observers.gradients.unhooked_leaves import refuse_compiled_autograd
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run


class TimelineObserver(Observer[Timeline]):
    """Records the requested call, and times the engine's run of it."""

    def __init__(self, run: Run) -> None:
        """Set up."""
        self._run = run
        self._has_begun = False
        self._timeline: Timeline | None = None

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Time the requested call, then stop the program.

        Raises:
            GradInspectError: Compiled autograd runs it.
        """
        if self._run.is_captured(call):
            return None
        recorded = self._run.record_call(call) if not self._has_begun and self._run.is_wanted(call) else None
        if recorded is None:
            if self._has_begun:
                self._run.stop(call.caller)
            return None
        self._has_begun = True
        refuse_compiled_autograd()
        self._run.stop_recording()
        timer = NodeTimer(recorded.graph, recorded.outputs)

        def finish(_returned: object) -> None:
            self._timeline = timer.finish()
            self._run.stop(call.caller)

        return CallEnd(finish, timer.close)

    def result(self) -> Timeline | None:
        """Return the times."""
        return self._timeline

    def with_other_grads(self, result: Timeline, number: int) -> Timeline:
        """Store the number in the graph."""
        return replace(result, graph=with_other_grads(result.graph, number))
