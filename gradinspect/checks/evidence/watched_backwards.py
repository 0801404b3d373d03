"""The backward calls that are watched, and what was found in each: before, while and after the engine ran it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FrameType

from torch import Tensor

from gradinspect.analyses.gradients.observed import broken_gradients, parameter_rows, unmeasured_notes
from gradinspect.checks.evidence.before_backward import BeforeBackward, backward_line
from gradinspect.checks.evidence.collector_freeze import CollectorFreeze
from gradinspect.checks.evidence.custom_functions.functions import custom_functions
from gradinspect.checks.evidence.grad_scaling import is_scaling
from gradinspect.checks.evidence.in_place.stale import unknown_notes
from gradinspect.checks.evidence.logs import ProgramLogs
from gradinspect.checks.evidence.nonfinite import NonfiniteValues, PendingSearch
from gradinspect.checks.evidence.opaque_parts import opaque_parts
from gradinspect.checks.evidence.values.leaf_origins import LeafOrigins
from gradinspect.checks.facts.backward_calls import BackwardEnded, UnequalRuns
from gradinspect.checks.facts.dead_units import zeroed_inside
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on, registry, rule_of
from gradinspect.checks.spelling import IndexedModel, models_with_indices
from gradinspect.checks.watched_calls import WatchedCall, findings_of_calls, held_back_findings
from gradinspect.graph import Graph
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.transparency.release import release_wrappers
from gradinspect.recording.values.magnitudes import PendingFigures, fetched
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.torch_api.modes import unobserved
from gradinspect.units import format_count


class WatchedBackwards:
    """Watches one call after the other."""

    def __init__(
        self,
        logs: ProgramLogs,
        stop: Callable[[FrameType], object],
        on_end: Callable[[], None],
        on_graph: Callable[[Graph], object] | None = None,
    ) -> None:
        """Set up.

        Args:
            logs: What the program did until then.
            stop: Stops the program.
            on_end: Called at the end of each call.
            on_graph: Gets the graph of each call before the engine runs, and again with its gradients.
        """
        self._on_graph = on_graph or (lambda _graph: None)
        self.calls: list[WatchedCall] = []
        self.opaque: set[tuple[str, str]] = set()
        self.custom: set[str] = set()  # Functions of the program
        self.models: set[IndexedModel] = set()
        self.unmeasured: Counter[str] = Counter()  # sentences, and in how many calls
        self._logs = logs
        self._stop = stop
        self._on_end = on_end
        self._nonfinite = NonfiniteValues()
        self._nonfinite.last_step = logs.training.last_step
        self._nonfinite.first = lambda call: logs.calls.states.first(
            logs.flow.calls, logs.flow.read(call.outputs[0]), logs.frame
        )
        self._before = BeforeBackward(logs, self._nonfinite)
        self._origins = LeafOrigins(logs.flow, logs.calls.writes, logs.frame)
        self._collector_freeze = CollectorFreeze()
        self._to_repeat = {code: rule.must_repeat for code, rule in registry().rules.items() if rule.must_repeat}

    @property
    def saw_all(self) -> bool:
        """Whether nothing in these calls remained unknown."""
        return not (self._before.num_unknown or self.unmeasured or self.opaque)

    def findings(self) -> Iterable[Finding]:
        """List what the calls together show."""
        return findings_of_calls(self.calls, self._to_repeat)

    def waits(self) -> str | None:
        """Say what every call has shown so far, and a later one may not."""
        held_back = held_back_findings(self.calls, self._to_repeat)
        return f"every call had shown {held_back[0].code}" if held_back else None

    def notes(self) -> Iterator[str]:
        """Say what is not known."""
        yield from (f"{note[:-1]}, in {format_count(calls, 'call')}." for note, calls in self.unmeasured.items())
        yield from unknown_notes(self._before.num_unknown)

    def begin(self, walked: WalkedGraph, call: EngineCall) -> CallEnd:
        """Look at a call that is about to start. The walk is closed after the engine has run."""
        graph = walked.graph
        self._on_graph(graph)
        backward = backward_line(graph)
        self.opaque.update(opaque_parts(graph))
        self.custom.update(custom_functions(graph))
        self.models.update(models_with_indices(graph, backward))
        release_wrappers()  # those held only by us
        self._before.release()
        earlier = self._before.earlier_call(walked, call)
        self._logs.unused.begin(earlier.nodes, earlier.clock, backward)
        self._logs.recorder.errors.guard(self._logs.losses.begin)(call)
        self._logs.recorder.errors.guard(self._logs.read_once.begin)(call.frame)
        watched = WatchedCall(line=backward, nodes=earlier.nodes)
        self.calls.append(watched)
        watched.found += self._before.findings(walked, call, earlier.nodes)
        search = self._nonfinite.search
        is_explained = _explains(watched.found)
        if any(rule_of(finding.code).stops_run for finding in watched.found):
            self._stop(call.caller)  # on every rank: otherwise the engine would hang
        outputs = [OutputTensor(None, output) for output in call.outputs]
        only_leaves = call.kind == "backward" and not self._logs.needs_values
        gradients = GradientMeter(graph, outputs, walked.walk, times=False, only_leaves=only_leaves)
        self._before.remember(earlier, gradients.survivors(), keeps_graph=call.keeps_graph)
        self._logs.training.begin(walked, call)
        self._logs.calls.enter_backward()
        unfreeze, guard = self._collector_freeze.begin(), self._logs.recorder.errors.guard

        def after(returned: object) -> None:
            unfreeze()
            if call.kind == "grad":
                guard(self._returned)(call, returned)
            guard(self._ran)(watched)
            guard(partial(self._completed, is_explained=is_explained))(watched, gradients, search)
            guard(self._on_end)()

        def abandon() -> None:
            unfreeze()
            guard(gradients.close)()
            guard(self._ran)(watched)
            guard(self._failed)(watched, search)
            guard(self._on_end)()

        return CallEnd(after, abandon)

    def _returned(self, call: EngineCall, gradients: object) -> None:
        """Look at what autograd.grad has returned."""
        line = self._logs.recorder.frames.number_of(call.frame)
        self._logs.calls.arguments.columns.returned(call, gradients, line)

    def _completed(
        self, watched: WatchedCall, gradients: GradientMeter, search: PendingSearch | None, *, is_explained: bool
    ) -> None:
        """Look at the gradients of a call that has completed."""
        leaves = dict(gradients.leaves())
        finished = gradients.finish(self._pending(search))
        self._on_graph(finished)
        found = self._settled(search, gradients.other_rows, watched)
        explained = is_explained or self._nonfinite.explains or _explains(found)
        judge(watched, finished, leaves, self._origins, self._logs, is_explained=explained)
        self.unmeasured.update(unmeasured_notes(finished))
        self._nonfinite.judged(watched.judged)

    def _failed(self, watched: WatchedCall, search: PendingSearch | None) -> None:
        """Look at the loss of a call that has failed."""
        with unobserved():
            rows = fetched(self._pending(search))
        self._settled(search, rows, watched)

    def _pending(self, search: PendingSearch | None) -> list[PendingFigures]:
        """List what a call that has run has left on devices, to be fetched with the statistics of its gradients."""
        return [*self._logs.training.pending, *(() if search is None else search.figures)]

    def _settled(
        self, search: PendingSearch | None, rows: list[list[list[float]]], watched: WatchedCall
    ) -> list[Finding]:
        """Take what was fetched of that, and return what it shows of the loss."""
        number = len(self._logs.training.pending)
        self._logs.training.settle(rows[:number])
        found = [] if search is None else list(self._nonfinite.settled(search, rows[number:], watched.line))
        watched.found += found
        return found

    def _ran(self, watched: WatchedCall) -> None:
        """Look at what happened inside a call, whether or not it completed."""
        self._logs.calls.leave_backward()
        self._logs.training.end()
        for difference in self._logs.checkpoints.take():
            watched.found += findings_on(UnequalRuns(difference, watched.line), self._logs.recorder.errors.found)


def _explains(findings: Iterable[Finding]) -> bool:
    """Return whether a finding explains what is wrong with the gradients."""
    return any(rule_of(one.code).explains_gradients for one in findings)


def judge(
    watched: WatchedCall,
    graph: Graph,
    leaves: Mapping[int, Tensor],
    origins: LeafOrigins,
    logs: ProgramLogs,
    *,
    is_explained: bool,
) -> None:
    """Look at the gradients of a call that has completed.

    Args:
        watched: What was found before.
        graph: The graph with its gradients.
        leaves: That of each node that has one.
        origins: How they got their values.
        logs: What the program did until then.
        is_explained: Whether what is wrong with the gradients is known already.
    """
    ended = BackwardEnded(
        graph,
        broken_gradients(graph),
        watched.line,
        is_scaling,
        lambda number: origins.of(leaves.get(number)),
        lambda number: logs.training.method_of(leaves.get(number)),
        lambda number: logs.frame(logs.training.origin(leaves.get(number))),
    )
    errors = logs.recorder.errors
    if not is_explained:
        watched.judged += findings_on(ended, errors.found)
        watched.zeroed_inside = zeroed_inside(ended) if watched.judged else frozenset()
    rows = [row for row in parameter_rows(graph) if row.node in leaves]
    watched.parameters = {row.name: id(leaves[row.node]) for row in rows}
    watched.learned = {id(leaves[row.node]) for row in rows if row.stats is not None and row.stats.teaches}
    watched.unmeasured = {id(leaves[row.node]): row.unmeasured for row in rows if row.unmeasured is not None}
    watched.is_complete = True
