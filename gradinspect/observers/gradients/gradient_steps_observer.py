"""Consecutive backward calls: the gradients of each, and the optimizer step that follows."""

from collections.abc import Callable, Sequence
from types import FrameType

from msgspec.structs import replace

from gradinspect.analyses.gradients.steps import GradientStep, GradientSteps, step_of
from gradinspect.graph import Graph, with_other_grads
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.observers.gradients.updates import UpdateMeter
from gradinspect.recording.outputs import OutputTensor
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.patching.interruptions import pass_on_interruption


class GradientCalls:
    """Measures a number of backward calls. Keeps the last graph, and a table row for each call."""

    def __init__(self, num_steps: int, stop: Callable[[FrameType], None]) -> None:
        """Set up.

        Args:
            num_steps: How many calls.
            stop: Called with the program's frame when there is nothing left to wait for.
        """
        self._asked = num_steps
        self._stop = stop
        self._steps: list[GradientStep] = []
        self._graph: Graph | None = None
        self._gradients: GradientMeter | None = None  # while the engine runs
        self._updates: UpdateMeter | None = None  # from before the engine runs until the optimizer has stepped
        self.problem: Exception | None = None

    @property
    def num_left(self) -> int:
        """How many calls are still to be measured."""
        return self._asked - len(self._steps)

    @property
    def is_done(self) -> bool:
        """Whether all calls were measured, and no optimizer step is pending."""
        return self.num_left == 0

    @property
    def is_running(self) -> bool:
        """Whether the engine is in the middle of a measured call: any other call comes from another thread."""
        return self._gradients is not None

    def result(self) -> GradientSteps | None:
        """Return the result so far."""
        if self._graph is None:
            return None
        return GradientSteps(asked=self._asked, graph=self._graph, steps=tuple(self._steps))

    def begin(self, graph: Graph, outputs: Sequence[OutputTensor], caller: FrameType) -> CallEnd:
        """Measure a call that is about to start."""
        gradients = self._gradients = GradientMeter(graph, outputs)
        updates = self._updates = UpdateMeter(gradients.leaves(), self._after_step)

        def after(_returned: object) -> None:
            if self._gradients is not gradients:  # the program has ended meanwhile, on another thread
                return
            self._graph, self._gradients = gradients.finish(), None
            if not updates.wait():
                self._after_step(caller)

        return CallEnd(after, self.settle)

    def settle(self) -> None:
        """Finish the current call: the program has reached its next backward call, or its end."""
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
        weights = found.weight_norms | updates.weights.known
        notes = (*found.notes, *updates.updates.notes("update"))
        found = replace(found, weight_norms=weights, update_norms=updates.updates.known, notes=notes)
        self._graph = replace(self._graph, gradients=found)
        self._steps.append(step_of(self._graph))

    def _after_step(self, frame: FrameType) -> None:
        try:
            self.settle()
        except Exception as error:  # an error of ours must not reach the program
            pass_on_interruption(error)
            self.problem = self.problem or error
        if self.is_done or self.problem is not None:
            self._stop(frame)


class GradientStepsObserver(Observer[GradientSteps]):
    """Measures the gradients of the requested call and of those after it."""

    def __init__(self, run: Run, num_steps: int) -> None:
        """Set up."""
        self._run = run
        self._calls = GradientCalls(num_steps, self._stop)

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Record the graph, then measure while the engine runs; stop the program after the last call.

        Calls are measured one at a time: those of other threads meanwhile are not.
        """
        if self._calls.is_running or self._run.is_captured(call):
            return None
        self.settle()
        if self._calls.is_done or self.problem is not None:
            self._stop(call.caller)
            return None
        recorded = self._run.record_call(call) if self._run.is_wanted(call) else None
        if recorded is None:
            return None
        return self._calls.begin(recorded.graph, recorded.outputs, call.caller)

    def _stop(self, frame: FrameType) -> None:
        """Record no longer, and stop the program.

        Not before: while the optimizer is waited for, the recorder hides our hooks from torch.compile. It would break
        the graph of a compiled optimizer there.
        """
        self._run.stop_recording()
        self._run.stop(frame)

    def settle(self) -> None:
        """Stop waiting for the optimizer."""
        self._calls.settle()
        self.problem = self.problem or self._calls.problem

    def result(self) -> GradientSteps | None:
        """Return the result so far."""
        return self._calls.result()

    def with_other_grads(self, result: GradientSteps, number: int) -> GradientSteps:
        """Store the number in the last graph."""
        return replace(result, graph=with_other_grads(result.graph, number))


class GradientsObserver(Observer[Graph]):
    """Records the graph of one call, with its gradients."""

    def __init__(self, run: Run) -> None:
        """Set up."""
        self._steps = GradientStepsObserver(run, 1)

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Record the graph, then measure while the engine runs."""
        return self._steps.on_call(call)

    def settle(self) -> None:
        """Stop waiting for the optimizer."""
        self._steps.settle()
        self.problem = self._steps.problem

    def result(self) -> Graph | None:
        """Return the graph."""
        steps = self._steps.result()
        return None if steps is None else steps.graph

    def with_other_grads(self, result: Graph, number: int) -> Graph:
        """Store the number in the graph."""
        return with_other_grads(result, number)
