"""Record the graph of one moment: a backward call, or the tensors left by a program."""

from collections.abc import Callable
from math import isfinite

from msgspec.structs import replace

from gradinspect.graph import CaptureKind, Graph, with_other_grads
from gradinspect.observers.gradients.norms import scalar_value
from gradinspect.observers.graphs.second_graph import record_second_graph
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import OutputTensor
from gradinspect.runner.engine import EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Recorded, Run


class GraphObserver(Observer[Graph]):
    """Records the graph of the requested call, or the one that its backward builds."""

    needs_backward = False
    reports_missing_names = True

    def __init__(self, run: Run) -> None:
        """Set up."""
        self._run = run
        self._graph: Graph | None = None
        self._opens = not run.request.creates_graph

    def on_call(self, call: EngineCall) -> None:
        """Record at the requested call, then stop the program."""
        if self._run.request.creates_graph and self._run.is_captured(call):
            return  # a backward of ours would become a part of what is captured
        if self._graph is None and self._run.is_wanted(call):
            self._take(with_loss(self._run.record_call(call, opens_compiled=self._opens)), call)
            self._run.stop_recording()
        if self._graph is not None:
            self._run.stop(call.caller)

    def at_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Record the graph of the remaining tensors."""
        self._take(self._run.record(kind, outputs, variables=variables, opens_compiled=self._opens), None)

    def result(self) -> Graph | None:
        """Return the graph."""
        return self._graph

    def with_other_grads(self, result: Graph, number: int) -> Graph:
        """Store the number in the graph."""
        return with_other_grads(result, number)

    def _take(self, recorded: Recorded | None, call: EngineCall | None) -> None:
        if recorded is not None and self._run.request.creates_graph:
            recorded = record_second_graph(self._run, recorded, None if call is None else call.gradients)
        self._graph = None if recorded is None else recorded.graph


def with_loss(recorded: Recorded | None) -> Recorded | None:
    """Add a warning if the loss is NaN or infinite."""
    loss = None if recorded is None else scalar_value(recorded.outputs)
    if recorded is None or loss is None or isfinite(loss):
        return recorded
    warning = f"The loss is {loss}. Where it comes from is found by: gradinspect check"
    return recorded._replace(graph=replace(recorded.graph, warnings=(*recorded.graph.warnings, warning)))
