"""Look for what is wrong in the first backward calls of a program, before and while the engine goes through them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from gradinspect.analyses.findings import Finding, Findings
from gradinspect.analyses.gradient_findings import forward_finding, gradient_findings
from gradinspect.analyses.second_backward import UsedCall, second_backward_findings
from gradinspect.analyses.stale_values import stale_findings
from gradinspect.capture.cuts import GradientCuts
from gradinspect.capture.engine import EngineCall, Watch
from gradinspect.capture.gradients import GradientWatch
from gradinspect.capture.mutations import MutationLog
from gradinspect.capture.namespaces import base_folder
from gradinspect.capture.nonfinite import nonfinite_value
from gradinspect.capture.outputs import OutputTensor, has_graph
from gradinspect.capture.recorder import Recorder, next_sequence_nr
from gradinspect.capture.request import Request
from gradinspect.capture.run import Run
from gradinspect.capture.stale import stale_values
from gradinspect.graph import Frame, Graph


class Checker:
    """Watches so many backward calls of one program."""

    def __init__(self, request: Request, recorder: Recorder, stop: Callable[[FrameType], None]) -> None:
        """Set up.

        Args:
            request: How many calls, and what to call the program.
            recorder: Knows the lines.
            stop: Is told, with the program's frame, that there is nothing left to wait for.
        """
        self.log = MutationLog(recorder)
        self.cuts = GradientCuts(recorder, base_folder(request.source))
        self._asked = request.checks or 1
        self._source = request.label
        self._folder: Path = base_folder(request.source)
        self._recorder = recorder
        self._stop = stop
        self._num_calls = 0
        self._findings: list[Finding] = []
        self._used: list[UsedCall] = []

    @property
    def is_done(self) -> bool:
        """Whether all calls were watched."""
        return self._num_calls >= self._asked

    def result(self) -> Findings | None:
        """Return what was found so far; None before the first call."""
        if not self._num_calls:
            return None
        found = (*self._findings, *self.cuts.findings())
        return Findings(source=self._source, num_calls=self._num_calls, findings=found)

    def on_call(self, run: Run, call: EngineCall) -> Watch | None:
        """Record, look for what is wrong before the engine meets it, then watch the engine run."""
        if self.is_done:
            return None
        if not has_graph(call.outputs):
            with run.surroundings.visit():
                self._refused(call)
            return None
        recorded = run.record_call(call) if run.is_wanted(call) else None
        if recorded is None:
            return None
        with run.surroundings.visit():
            return self.begin(recorded.graph, call)

    def begin(self, graph: Graph, call: EngineCall) -> Watch:
        """Look at a call that is about to begin."""
        self._num_calls += 1
        found = list(self._before(graph, call))
        was_finite = all(finding.code != "GI502" for finding in found)
        self._findings += found
        if not call.keeps_graph:
            self._used.append(self._used_by(graph, call))
        if self.is_done:
            self._recorder.pause()

        gradients = GradientWatch(graph, [OutputTensor(None, output) for output in call.outputs])

        def after(_returned: object) -> None:
            backward = self._backward_line(graph)
            self._findings += gradient_findings(gradients.finish(), backward, was_finite=was_finite)
            if self.is_done:
                self._stop(call.caller)

        return Watch(after, gradients.close)

    def _refused(self, call: EngineCall) -> None:
        """Look at a call that has no graph to go through."""
        self._num_calls += 1
        self._findings += self.cuts.refused(call)

    def _before(self, graph: Graph, call: EngineCall) -> Iterator[Finding]:
        """Find what the engine will fail on, or fail to notice."""
        values = stale_values(graph, call, self.log, self._frame)
        backward = self._backward_line(graph)
        yield from stale_findings(graph, values, backward)
        yield from second_backward_findings(graph, self._used, backward)
        value = nonfinite_value(graph, call)
        if value is not None:
            yield forward_finding(graph, value, backward)
        yield from self.cuts.begin(graph, call)

    def _used_by(self, graph: Graph, call: EngineCall) -> UsedCall:
        """Remember what a call is about to use up."""
        return UsedCall(
            number=call.number,
            frame=self._backward_line(graph),
            root=graph.roots[0].name if graph.roots else None,
            nodes=frozenset(node.sequence_nr for node in graph.nodes if node.sequence_nr is not None),
            clock=next_sequence_nr(),
        )

    def _frame(self, number: int | None) -> Frame | None:
        return None if number is None else self._recorder.frames.record(number, self._folder)

    def _backward_line(self, graph: Graph) -> Frame | None:
        frame = graph.captured_at.frame
        return None if frame is None else graph.frames[frame]
