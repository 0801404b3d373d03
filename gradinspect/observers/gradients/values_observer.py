"""Record the graph of one call, with fingerprints of its values."""

from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import AT_LEAVES
from gradinspect.graph import Graph, with_other_grads
from gradinspect.observers.gradients.value_meter import ForwardValues, ValueMeter
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run


class ValuesObserver(Observer[Graph]):
    """Listens from the start, measures during the requested call, then stops the program."""

    def __init__(self, run: Run) -> None:
        """Set up; two observers of one run share what they observe."""
        self._run = run
        listeners = run.recorder.listeners
        shared = [listener for listener in listeners if isinstance(listener, ForwardValues)]
        self._forward = shared[0] if shared else ForwardValues()
        if not shared:
            listeners.append(self._forward)
        self._graph: Graph | None = None
        self._meter: ValueMeter | None = None  # while the engine runs

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Record the graph, then measure while the engine runs. A call on another thread meanwhile is not measured."""
        if self._meter is not None or self._run.is_captured(call):
            return None
        if self._graph is not None:
            self._run.stop(call.caller)
            return None
        recorded = self._run.record_call(call) if self._run.is_wanted(call) else None
        if recorded is None:
            self._forward.forget()
            return None
        if not self._run.is_provisional:
            self._run.recorder.dismiss(self._forward)
        self._run.stop_recording()
        meter = self._meter = ValueMeter(recorded.graph, recorded.outputs, self._forward.of_nodes(recorded.graph))

        self._forward.forget()

        def after(_returned: object) -> None:
            if self._meter is not meter:  # the program has ended meanwhile, on another thread
                return
            self._meter = None
            warnings = (*recorded.graph.warnings, *([] if meter.unhooked is None else [AT_LEAVES]))
            self._graph = replace(recorded.graph, values=meter.finish(), warnings=warnings)
            self._run.stop(call.caller)

        return CallEnd(after, self.settle)

    def settle(self) -> None:
        """Release the graph: the engine has failed, or the program has ended."""
        self.problem = self.problem or self._forward.problem
        meter, self._meter = self._meter, None
        if meter is not None:
            meter.close()

    def result(self) -> Graph | None:
        """Return the graph."""
        return self._graph

    def with_other_grads(self, result: Graph, number: int) -> Graph:
        """Store the number in the graph."""
        return with_other_grads(result, number)
