"""What is looked for before the engine begins: what will make it fail, and what it will not notice."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from gradinspect.checks.evidence.in_place.stale import stale_values
from gradinspect.checks.evidence.kept_graphs.holding import holding
from gradinspect.checks.evidence.kept_graphs.kept_history import kept_history
from gradinspect.checks.evidence.lines.stored import storing
from gradinspect.checks.evidence.logs import ProgramLogs
from gradinspect.checks.evidence.nonfinite import NonfiniteValues
from gradinspect.checks.evidence.objectives.repeated_terms import repeated_terms
from gradinspect.checks.evidence.program_files import maker_line
from gradinspect.checks.evidence.ranks import ranks_that_average, summary_of_rank
from gradinspect.checks.facts.backward_calls import (
    BackwardStarts,
    EarlierCall,
    GrownGraph,
    HoldsOf,
    LaterRound,
    StaleGraph,
    earlier_rounds,
)
from gradinspect.checks.facts.ranks import RanksOfCall
from gradinspect.checks.facts.training import DroppedResult
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame, Graph
from gradinspect.observers.graphs.live_graph import Survivors
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.names.variables import LARGEST_CONTAINER, namespaces_from, num_unlisted
from gradinspect.runner.engine import EngineCall


class BeforeBackward:
    """Looks at calls that are about to start, and remembers them."""

    def __init__(self, logs: ProgramLogs, nonfinite: NonfiniteValues) -> None:
        """Share the logs, and what is known of values that are not finite."""
        self.num_unknown = 0  # saved tensors that a write past autograd may have changed
        self._logs = logs
        self._nonfinite = nonfinite
        self._calls: list[EarlierCall] = []
        self._survivors: list[Survivors] = []  # of their graphs
        self._freed_by: list[EarlierCall] = []  # those that freed their graph

    def release(self) -> None:
        """Forget the graphs that are gone."""
        self._survivors = [earlier for earlier in self._survivors if earlier.are_there()]

    def remember(self, earlier: EarlierCall, survivors: Survivors, *, keeps_graph: bool) -> None:
        """Remember a call that begins."""
        self._calls.append(earlier)
        self._freed_by += () if keeps_graph else (earlier,)
        self._survivors.append(survivors)

    def findings(self, walked: WalkedGraph, call: EngineCall, numbers: AbstractSet[int]) -> Iterator[Finding]:
        """Find what will make the engine fail, or what it will not notice; `numbers` are those of its nodes."""
        graph = walked.graph
        backward = backward_line(graph)
        holds = holding(call.frame, self._logs.recorder)
        stored = storing(self._logs.recorder.frames, self._logs.folder)
        log = self._logs.calls
        for find in (
            lambda: self._stale(walked, call, backward, holds),
            lambda: self._judged(BackwardStarts(graph, backward, self._freed_by, holds, self._made_at, stored)),
            lambda: self._judged(GrownGraph(graph, log.broadcasts.operators(self._logs.frame), backward)),
            lambda: self._between_ranks(walked, call, backward),
            lambda: self._growing(graph, call, backward),
            lambda: self._dropped(walked, numbers, backward),
            lambda: self._repeated(graph, call),
            lambda: self._unlisted(call),
            lambda: self._nonfinite.findings(walked, call, backward),
            lambda: self._logs.cuts.begin(walked, call),
        ):
            yield from self._logs.recorder.errors.found(find)

    def _made_at(self, class_name: str) -> Frame | None:
        return maker_line(class_name, self._logs.folder)

    def _stale(
        self, walked: WalkedGraph, call: EngineCall, backward: Frame | None, holds: HoldsOf
    ) -> Iterator[Finding]:
        """Find saved tensors that were modified."""
        stale = stale_values(walked, call, self._logs.calls.writes, self._logs.frame)
        self.num_unknown += stale.num_unknown
        return self._judged(StaleGraph(walked.graph, stale.values, backward, self._calls, holds))

    def _judged(self, fact: object) -> Iterator[Finding]:
        return findings_on(fact, self._logs.recorder.errors.found)

    def _growing(self, graph: Graph, call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        """Compare with earlier iterations of the same loop; autograd.grad() builds on its own results by design."""
        rounds = earlier_rounds(graph, self._calls, backward) if call.kind == "backward" else []
        if rounds:
            kept = kept_history(call, rounds, self._logs.recorder, self._logs.folder) if self._survivors else []
            holds = holding(call.frame, self._logs.recorder)
            yield from self._judged(LaterRound(graph, rounds, kept, backward, holds))

    def _repeated(self, graph: Graph, call: EngineCall) -> Iterator[Finding]:
        """Report what is added to a loss more than once; what autograd.grad() is called for need not be a loss."""
        for fact in repeated_terms(graph) if call.kind == "backward" else ():
            yield from self._judged(fact)

    def _unlisted(self, call: EngineCall) -> Iterator[Finding]:
        """Count what has no name, as it is too far back in a list; this finds nothing."""
        number = sum(map(num_unlisted, namespaces_from(call.frame)))
        if number:
            why = f"after the first {LARGEST_CONTAINER:,} of a list or dict"
            self._logs.recorder.errors.leave_out("name of a tensor or module", why, number)
        return iter(())

    def _dropped(self, walked: WalkedGraph, numbers: AbstractSet[int], backward: Frame | None) -> Iterator[Finding]:
        """Report calls that were meant to change what backward is about to go through."""
        leaves = frozenset(map(id, walked.walk.leaves().values()))
        for one in self._logs.calls.dropped.reached(numbers, leaves):
            called = None if one.frame is None else self._logs.frame(one.frame)
            yield from self._judged(
                DroppedResult(
                    name=one.name,
                    called=called,
                    loop_variables=one.loop_variables,
                    is_data=one.is_data,
                    backward=backward,
                )
            )

    def _between_ranks(self, walked: WalkedGraph, call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        """Compare this call with those of the other ranks."""
        if self._logs.ranks is not None:
            partners = ranks_that_average(self._logs.recorder, self._logs.ranks.num_ranks)
            if len(partners) > 1:
                mine = summary_of_rank(self._logs.ranks.rank, walked, self._logs.recorder)
                ranks = self._logs.ranks.exchange(call.name, mine, partners)
                yield from self._judged(RanksOfCall(ranks, backward))

    def earlier_call(self, walked: WalkedGraph, call: EngineCall) -> EarlierCall:
        """Return what a call is about to run, as later calls know it."""
        graph = walked.graph
        return EarlierCall(
            name=call.name,
            frame=backward_line(graph),
            root=graph.roots[0].name if graph.roots else None,
            nodes=walked.walk.known_numbers(),
            clock=self._logs.recorder.next_number(),
            clocks=dict(self._logs.recorder.others.clocks()),
        )


def backward_line(graph: Graph) -> Frame | None:
    """Return the line of the call whose graph this is."""
    frame = graph.captured_at.frame
    return None if frame is None else graph.frames[frame]
