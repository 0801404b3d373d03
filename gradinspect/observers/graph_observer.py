"""Look at one moment: record its graph, and time or step through the engine's run if that was asked for."""

import dataclasses
from collections.abc import Callable, Sequence

import torch
from msgspec.structs import replace

from gradinspect.analyses.gradients.stepping import Ending as StepEnding
from gradinspect.analyses.gradients.timeline import Timeline
from gradinspect.graph import CaptureKind, Graph
from gradinspect.observers.freed_graphs import FreedGraphs
from gradinspect.observers.lockstep import Lockstep, Watcher
from gradinspect.observers.synthetic_backward import starting_gradients, step_from_outputs
from gradinspect.observers.timing import TimeWatch
from gradinspect.record.capture import record_graph
from gradinspect.record.outputs import OutputTensor
from gradinspect.record.second_order import gradients_with_graph
from gradinspect.record.variables import Variable
from gradinspect.runner.engine import EngineCall, Watch
from gradinspect.runner.request import Request
from gradinspect.runner.run import Recorded, Run


class GraphObserver:
    """The graph of one moment, the times of its nodes, or how stepping through it ended."""

    problem: Exception | None = None

    def __init__(self, request: Request) -> None:
        """Set up for what the user asked for."""
        self.graph: Graph | None = None
        self._request = request
        self._watcher: Watcher | None = request.watcher
        self._timeline: Timeline | None = None
        self._steps: StepEnding | None = None
        self._consumed = FreedGraphs()

    def result(self) -> Graph | Timeline | StepEnding | None:
        """Return what was seen so far."""
        if self._watcher is not None:
            return self._steps
        return self._timeline if self._request.times else self.graph

    def on_call(self, run: Run, call: EngineCall) -> Watch | None:
        """Record at the call that was asked for, then stop the program unless the engine is to be watched."""
        watch = None
        if self.graph is None and run.is_wanted(call):
            self._take(run, run.record_call(call), call)
            run.stop_recording()
            watch = None if self.graph is None else self._watch_run(run, self.graph, call)
        elif self.graph is None and self._watcher is not None:
            self._consumed.note(call)
        if watch is None and self.graph is not None:
            run.stop(call.caller)
        return watch

    def at_end(
        self, run: Run, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Record the tensors that a program has left, or that a callable has returned."""
        self._take(run, run.record(kind, outputs, variables=variables), None)

    def _take(self, run: Run, recorded: Recorded | None, call: EngineCall | None) -> None:
        """Keep what was recorded, or the graph that its backward builds; step through it if nobody else will run it."""
        if recorded is None:
            return
        self.graph = self._with_warning(recorded.graph)
        outputs = recorded.outputs
        if self._request.creates_graph:
            outputs = self._take_second(run, recorded, None if call is None else call.gradients)
        if self._watcher is not None and (call is None or self._request.creates_graph):
            with run.door.closed():
                self._steps = step_from_outputs(
                    self.graph, outputs, self._watcher, self._request.grad_output, run.process_state.talk
                )

    def _take_second(
        self, run: Run, recorded: Recorded, gradients: Sequence[torch.Tensor | None] | None
    ) -> list[OutputTensor]:
        """Record the graph that backward builds instead of the one that it goes through."""
        self.graph = None
        run.stop_recording()
        with run.process_state.visit():
            with run.door.closed():
                starts = starting_gradients(recorded.outputs, gradients)
                outputs, makers = gradients_with_graph(recorded.graph, recorded.outputs, starts)
            moment = dataclasses.replace(recorded.moment, makers=makers)
            self.graph = record_graph(outputs, moment, run.recorder)
        return outputs

    def _watch_run(self, run: Run, graph: Graph, call: EngineCall) -> Watch | None:
        """Watch the engine go through the graph that was just recorded, if that was asked for."""
        if self._request.times:
            return self._watch_times(run, graph, call)
        if self._watcher is not None and not self._request.creates_graph:
            return self._step_through(run, graph, self._watcher, call)
        return None

    def _watch_times(self, run: Run, graph: Graph, call: EngineCall) -> Watch:
        """Time the engine, and stop the program after it."""
        watch = TimeWatch(graph, run.outputs_of(call))

        def after(_returned: object) -> None:
            self._timeline = watch.finish()
            run.stop(call.caller)

        return Watch(after, watch.close)

    def _step_through(self, run: Run, graph: Graph, watcher: Watcher, call: EngineCall) -> Watch:
        """Step through the engine's run, and stop the program after it, or when the watcher has seen enough."""

        def leave(steps: Lockstep) -> None:
            self._steps = steps.ending()
            steps.close()
            run.stopper.stop(call.caller)

        if not watcher.begin(graph, "", run.process_state.talk):
            self._steps = StepEnding(graph=graph, num_steps=0, is_complete=False)
            run.stopper.stop(call.caller)
        asked = [OutputTensor(None, value) for value in call.inputs] if call.kind == "grad" else []
        steps = Lockstep(graph, run.outputs_of(call), call.gradients, watcher, leave, inputs=asked)

        def after(returned: Sequence[torch.Tensor | None]) -> None:
            run.problem = run.problem or steps.problem
            self._steps = steps.finish(returned)
            run.stop(call.caller)

        return Watch(after, steps.close)

    def _with_warning(self, graph: Graph) -> Graph:
        """Say who has used a graph up, to those who want to run it."""
        warning = self._consumed.warning(graph) if self._watcher is not None else None
        return graph if warning is None else replace(graph, warnings=(*graph.warnings, warning))
