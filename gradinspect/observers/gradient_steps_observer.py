"""Watch backward calls in a row: each one's gradients, and what the optimizer then makes of them."""

from collections.abc import Callable, Sequence
from types import FrameType

from msgspec.structs import replace

from gradinspect.analyses.gradients.steps import GradientSteps, Step, step_of
from gradinspect.graph import Graph
from gradinspect.observers.gradients import GradientWatch
from gradinspect.observers.updates import UpdateWatch
from gradinspect.record.outputs import OutputTensor
from gradinspect.runner.engine import EngineCall, Watch
from gradinspect.runner.run import Run


class GradientStepsObserver:
    """Watches so many backward calls. Only the last graph is kept whole; of the others, rows."""

    def __init__(self, num_steps: int | None, stop: Callable[[FrameType], None]) -> None:
        """Set up.

        Args:
            num_steps: How many calls; None: one, and the result is its graph.
            stop: Is told, with the program's frame, that there is nothing left to wait for.
        """
        self._asked = num_steps
        self._stop = stop
        self._steps: list[Step] = []
        self._graph: Graph | None = None
        self._gradients: GradientWatch | None = None  # while the engine runs
        self._updates: UpdateWatch | None = None  # from before the engine runs until the optimizer has stepped
        self.problem: Exception | None = None

    @property
    def num_left(self) -> int:
        """How many calls are still to be watched."""
        return (self._asked or 1) - len(self._steps)

    @property
    def is_done(self) -> bool:
        """Whether all calls were watched, and no optimizer is waited for."""
        return self.num_left == 0

    def result(self) -> Graph | GradientSteps | None:
        """Return what was seen so far; the optimizer is waited for no longer."""
        self.settle()
        if self._graph is None or self._asked is None:
            return self._graph
        return GradientSteps(asked=self._asked, graph=self._graph, steps=tuple(self._steps))

    def on_call(self, run: Run, call: EngineCall) -> Watch | None:
        """Record, then watch the engine run; the watch stops the program when it has seen enough."""
        self.settle()
        run.problem = run.problem or self.problem
        if self.is_done or run.problem is not None:
            run.stop(call.caller)
            return None
        recorded = run.record_call(call) if run.is_wanted(call) else None
        if recorded is None:
            return None
        if self.num_left == 1:
            run.stop_recording()
        return self.begin(recorded.graph, recorded.outputs, call.caller)

    def begin(self, graph: Graph, outputs: Sequence[OutputTensor], caller: FrameType) -> Watch:
        """Watch a call that is about to begin."""
        gradients = self._gradients = GradientWatch(graph, outputs)
        updates = self._updates = UpdateWatch(gradients.leaves(), self._after_step)

        def after(_returned: object) -> None:
            self._graph, self._gradients = gradients.finish(), None
            if not updates.wait():
                self._after_step(caller)

        return Watch(after, self.settle)

    def settle(self) -> None:
        """Take what there is: the program has come to its next backward call, or to its end."""
        updates, self._updates = self._updates, None
        gradients, self._gradients = self._gradients, None
        if updates is not None:
            updates.close()
        if gradients is not None:  # the engine has failed
            gradients.close()
            return
        if updates is None or self._graph is None or self._graph.gradients is None:
            return
        self.problem = self.problem or updates.problem
        found = self._graph.gradients
        weights = found.weight_norms | updates.weight_norms
        found = replace(found, weight_norms=weights, update_norms=updates.update_norms)
        self._graph = replace(self._graph, gradients=found)
        self._steps.append(step_of(self._graph))

    def _after_step(self, frame: FrameType) -> None:
        try:
            self.settle()
        except Exception as error:  # a mistake of ours is not the program's
            self.problem = self.problem or error
        if self.is_done or self.problem is not None:
            self._stop(frame)
