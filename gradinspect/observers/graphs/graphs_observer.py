"""Record the graph of each backward call, up to a number of them."""

from gradinspect.graph import Graph
from gradinspect.recording.outputs import has_graph
from gradinspect.runner.engine import EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run


class GraphsObserver(Observer[tuple[Graph, ...]]):
    """Records backward() calls and autograd.grad() calls, in order."""

    needs_backward = False
    takes_any_call = True

    def __init__(self, run: Run, most: int) -> None:
        """Set up for at most `most` graphs."""
        self._run = run
        self._most = most
        self._graphs: list[Graph] = []

    def on_call(self, call: EngineCall) -> None:
        """Record a call that is about to start, if it has a graph."""
        if len(self._graphs) < self._most and has_graph(call.outputs):
            recorded = self._run.record_call(call, opens_compiled=True)
            self._graphs += [] if recorded is None else [recorded.graph]

    def result(self) -> tuple[Graph, ...]:
        """Return the graphs so far."""
        return tuple(self._graphs)
