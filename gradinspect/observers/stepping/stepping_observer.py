"""Step through one backward call, or through a backward of our own if the program calls none."""

from collections.abc import Callable, Sequence

import torch
from msgspec.structs import replace

from gradinspect.analyses.gradients.stepping import SteppingOutcome
from gradinspect.errors import GradInspectError
from gradinspect.graph import CaptureKind, Graph
from gradinspect.observers.gradients.unhooked_leaves import refuse_compiled_autograd
from gradinspect.observers.graphs.freed_graphs import FreedGraphs
from gradinspect.observers.graphs.second_graph import record_second_graph
from gradinspect.observers.stepping.lockstep import Lockstep, StepListener
from gradinspect.observers.stepping.synthetic_backward import GradOutput, step_from_outputs
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import OutputTensor
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Recorded, Run
from gradinspect.units import call_name


class SteppingObserver(Observer[SteppingOutcome]):
    """Records a graph, and calls a listener for each node that runs."""

    needs_backward = False
    reports_missing_names = True

    def __init__(self, run: Run, listener: StepListener, grad_output: GradOutput | None) -> None:
        """Set up.

        Args:
            run: The run.
            listener: Called for each step.
            grad_output: The gradient to start with if the program calls no backward.
        """
        self._run = run
        self._listener = listener
        self._grad_output = grad_output
        self._freed = FreedGraphs(run.recorder.others)
        self._has_begun = False
        self._outcome: SteppingOutcome | None = None

    @property
    def wants_backward(self) -> bool:
        """Whether the sum of the output stands in for a loss, as no gradient to start with was given."""
        return self._grad_output is None and not self._run.request.creates_graph

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Step through the requested call, or through the graph that it builds."""
        if self._run.is_captured(call):
            return None
        recorded = self._record_wanted(call)
        if recorded is None:
            if self._has_begun:
                self._run.stop(call.caller)
            return None
        if not self._run.request.creates_graph:
            return self._step_through(self._with_warning(recorded.graph), recorded.outputs, call)
        self._step_alone(record_second_graph(self._run, recorded, call.gradients))
        self._run.stop(call.caller)
        return None

    def at_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Step through a backward from the remaining tensors."""
        recorded = None if self._has_begun else self._run.record(kind, outputs, variables=variables)
        if recorded is not None and self._run.request.creates_graph:
            recorded = record_second_graph(self._run, recorded, None)
        if recorded is not None:
            self._step_alone(recorded)

    def result(self) -> SteppingOutcome | None:
        """Return the outcome of the steps."""
        return self._outcome

    def _record_wanted(self, call: EngineCall) -> Recorded | None:
        """Record the requested call; for earlier ones, store what they free."""
        if self._has_begun:
            return None
        if not self._run.is_wanted(call):
            self._freed.note(call)
            return None
        recorded = self._run.record_call(call)
        self._run.stop_recording()
        self._has_begun = recorded is not None
        return recorded

    def _step_alone(self, recorded: Recorded) -> None:
        """Step through our own backward."""
        graph = self._with_warning(recorded.graph)
        with self._run.interceptor.closed():
            self._outcome = step_from_outputs(
                graph, recorded.outputs, self._listener, self._grad_output, self._run.process_state.with_our_stdio
            )

    def _step_through(self, graph: Graph, outputs: list[OutputTensor], call: EngineCall) -> CallEnd:
        """Step through the engine's run, and stop the program after it, or when the listener does not continue.

        Raises:
            GradInspectError: Compiled autograd runs it.
        """
        refuse_compiled_autograd()

        def leave(steps: Lockstep) -> None:
            self._outcome = steps.outcome_so_far()
            steps.close()
            self._run.stopper.stop(call.caller)

        if not self._listener.begin(graph, "", self._run.process_state.with_our_stdio):
            self._outcome = SteppingOutcome(graph=graph, num_steps=0, is_complete=False)
            self._run.stopper.stop(call.caller)
        inputs = [OutputTensor(None, value) for value in call.inputs] if call.kind == "grad" else []
        steps = Lockstep(graph, outputs, call.gradients, self._listener, leave, inputs=inputs)

        def finish(returned: Sequence[torch.Tensor | None]) -> None:
            self.problem = self.problem or steps.problem
            self._outcome = steps.finish(returned)
            self._run.stop(call.caller)

        def abandon() -> None:
            steps.close()
            if self._outcome is None and self.problem is None:  # if the program catches the error, it is not told
                name = call_name(call.kind, call.number)
                self.problem = GradInspectError(
                    f"{name} of '{self._run.request.label}' failed, so its steps did not end.",
                    "Choose a later one with --backward or --grad.",
                )

        return CallEnd(finish, abandon)

    def _with_warning(self, graph: Graph) -> Graph:
        """Add a warning if saved tensors were freed, because backward will fail there."""
        warning = self._freed.warning(graph)
        return graph if warning is None else replace(graph, warnings=(*graph.warnings, warning))
