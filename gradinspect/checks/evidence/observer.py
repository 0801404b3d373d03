"""Look for problems in the first backward calls of a program, before and during the engine's run.

NOTE [The end of watching]
What follows the last watched call belongs to it: a step, a `.grad` that is read, an error. So the program is watched
until an operator reads a parameter again, or the next backward call, and only then stopped. A program that does neither
is stopped after some seconds.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from types import FrameType

from torch import Tensor

from gradinspect.analyses.gradients.observed import broken_gradients, parameter_rows, unmeasured_notes
from gradinspect.checks.evidence.call_choice import CallChoice
from gradinspect.checks.evidence.custom_functions.functions import CustomFunctions
from gradinspect.checks.evidence.grad_scaling import is_scaling
from gradinspect.checks.evidence.holding import holding
from gradinspect.checks.evidence.in_place.stale import stale_values, unknown_notes
from gradinspect.checks.evidence.kept_history import kept_history
from gradinspect.checks.evidence.nonfinite import NonfiniteValues, PendingSearch
from gradinspect.checks.evidence.optimizer_steps import OptimizerSteps
from gradinspect.checks.evidence.program_files import program_files
from gradinspect.checks.evidence.ranks import ranks_of_this_run, ranks_that_average, summary_of_rank
from gradinspect.checks.evidence.recomputation import CheckpointRuns
from gradinspect.checks.evidence.training.log import TrainingLog
from gradinspect.checks.evidence.unused_graphs import UnusedGraphs
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.cuts import GradientCuts
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.leaf_origins import LeafOrigins
from gradinspect.checks.evidence.watch_window import LEAST_CALLS, MOST_SECONDS, WatchWindow
from gradinspect.checks.facts.backward_calls import BackwardEnded, BackwardStarts, EarlierCall, HoldsOf
from gradinspect.checks.facts.training import DroppedResult
from gradinspect.checks.findings import Finding, Findings
from gradinspect.checks.registry import declared, findings_on, registry, rule_of
from gradinspect.checks.rules.custom_derivatives import derivative_findings, unchecked_notes
from gradinspect.checks.rules.gradients.zero_gradients import zeroed_inside
from gradinspect.checks.rules.graphs.checkpoint_mismatch import checkpoint_findings
from gradinspect.checks.rules.graphs.growing_graphs import earlier_rounds, growing_findings
from gradinspect.checks.rules.graphs.stale_values import stale_findings
from gradinspect.checks.rules.losses.broadcasts import broadcast_findings
from gradinspect.checks.rules.opaque_parts import compiled_parts, opaque_notes, opaque_parts
from gradinspect.checks.rules.ranks import missing_notes, rank_findings
from gradinspect.checks.watched_calls import WatchedCall, findings_of_calls, held_back_findings
from gradinspect.errors import GradInspectError
from gradinspect.graph import CallKind, Frame, Graph, frame_of
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.observers.graphs.live_graph import Survivors
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.frames import user_frames
from gradinspect.recording.magnitudes import PendingFigures, fetched
from gradinspect.recording.outputs import OutputTensor, has_graph
from gradinspect.recording.release import release_wrappers
from gradinspect.runner.engine import CallEnd, EngineCall, missed_notes, not_followed_notes
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.source import Expression
from gradinspect.torch_api.modes import require_function_modes, unobserved
from gradinspect.torch_api.nodes import UNKNOWN_NR, require_sequence_numbers
from gradinspect.torch_api.probes import missing_sentences
from gradinspect.torch_api.tensors import require_autocast_switch
from gradinspect.units import format_count

SECONDS_WITHOUT_CALL = 3 * MOST_SECONDS


class ChecksObserver(Observer[Findings]):
    """Looks for problems in the first backward calls of one program."""

    reports_missing_names = True
    reports_missed_calls = True
    reports_before_failure = True

    def __init__(self, run: Run, num_calls: int | None, *, gradcheck: bool = False) -> None:
        """Set up.

        Args:
            run: The run.
            num_calls: How many backward calls to look at; None: until all is known.
            gradcheck: Whether to check the backward of custom Functions numerically.
        """
        require_sequence_numbers("check")
        require_function_modes("check")
        if gradcheck:
            require_autocast_switch()
        self._run = run
        self._folder: Path = run.base_folder
        recorder = run.recorder
        flow = Dataflow(recorder)
        self._attached = ExitStack()
        self._call_log = TorchCallLog(recorder, flow)
        self._origins = LeafOrigins(flow, self._call_log.writes, self._frame)
        self._checkpoints = CheckpointRuns(self._folder)
        self._ranks = ranks_of_this_run()
        self._custom = CustomFunctions(self._folder) if gradcheck else None
        self._cuts = GradientCuts(recorder, flow, self._folder)
        self._training = TrainingLog(recorder, flow, self._folder)
        self._call_log.on_touch = self._training.touched
        self._cuts.created = self._training.created
        self._unused = UnusedGraphs(self._folder, self._cuts.reached, recorder.others)
        self._choice = CallChoice(run.request)
        self._steps = OptimizerSteps(
            recorder.errors.guard(self._look_at_window), recorder.turn, self._training.may_have_stepped
        )
        is_fixed = run.request.grad is not None or self._ranks is not None  # ranks must end at the same call
        self._window = WatchWindow(
            num_calls or (LEAST_CALLS if is_fixed else None),
            (self._steps.waits, self._cuts.waits, self._waits, self._unused.waits, self._training.waits),
            lambda: flow.is_half_full,
            lambda: any(True for _ in findings_of_calls(self._watched, self._to_repeat)),
        )
        self._is_settled = False
        self._is_ending = False  # NOTE [The end of watching]
        self._source = run.request.label
        self._recorder = recorder
        self._errors = recorder.errors
        self._stop = run.stop
        self._opaque: set[tuple[str, str]] = set()
        self._unmeasured: Counter[str] = Counter()  # sentences, and in how many calls
        self._num_unjudged = 0  # saved tensors that a write past autograd may have changed
        self._watched: list[WatchedCall] = []
        self._nonfinite = NonfiniteValues()
        self._collector_freeze = _CollectorFreeze()
        self._calls: list[EarlierCall] = []
        self._survivors: list[Survivors] = []  # of their graphs
        self._freed_by: list[EarlierCall] = []  # those that freed their graph
        self._to_repeat = {code: rule.must_repeat for code, rule in registry().rules.items() if rule.must_repeat}

    @property
    def has_enough(self) -> bool:
        """Whether all is known, or the time is over. NOTE [The end of watching]."""
        return self.has_left or self._is_ending

    @property
    def learned(self) -> frozenset[int]:
        """What identifies the parameters that got a finite gradient other than zero in any call."""
        return frozenset[int]().union(*(call.learned for call in self._watched))

    @property
    def unmeasured(self) -> dict[int, str]:
        """Why it is not known whether a parameter got such a gradient, by what identifies it."""
        return {leaf: why for call in self._watched for leaf, why in call.unmeasured.items()}

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Record what the program does, from before it runs until all calls were observed."""
        with self._attached:
            self._attached.callback(self._run.interceptor.leave)
            logs = (self._call_log, self._cuts, self._training, self._checkpoints, self._steps)
            for log in (*logs, self._custom or nullcontext()):
                self._attached.enter_context(log)
            yield

    def settle(self) -> None:
        """Look at what is left, and check the custom Functions: the program has ended."""
        if self._is_settled:
            return
        self._is_settled = True
        self._errors.guard(self._look_at_the_rest)()

    def _look_at_the_rest(self) -> None:
        self._call_log.on_new_graph = None
        with self._recorder.turn:
            if not self._is_ending:
                self._unused.look()
                if self._run.stopper.is_stopping:
                    self._window.is_over()
        if self._custom is not None:
            self._custom.check()

    def result(self) -> Findings | None:
        """Return what was found so far; None before the first call."""
        observed = self._choice.observed
        if not (observed.backwards or observed.grads):
            return None
        checked = [] if self._custom is None else self._custom.checked()
        ranks = () if self._ranks is None else self._ranks.missing
        findings = declared(
            (
                *self._found(lambda: findings_of_calls(self._watched, self._to_repeat)),
                *self._found(self._unused.findings),
                *self._found(lambda: self._cuts.findings(self._training.replaced)),
                *(one for fact in self._training.facts() for one in self._found(partial(findings_on, fact))),
                *self._found(lambda: derivative_findings(checked)),
            )
        )
        return Findings(
            rank=0 if self._ranks is None else self._ranks.rank,
            num_ranks=1 if self._ranks is None else self._ranks.num_ranks,
            source=self._source,
            num_calls=observed.backwards,
            num_grads=observed.grads,
            findings=findings,
            files=tuple(program_files(self._recorder.frames, findings, self._folder)),
            is_complete=self._saw_all(),
            notes=(
                *self._errors.notes(),
                *self._window.notes(),
                *self._run.captured_notes,
                *opaque_notes(sorted(self._opaque | set(compiled_parts(self._training.compiled_lines())))),
                *(f"{note[:-1]}, in {format_count(calls, 'call')}." for note, calls in self._unmeasured.items()),
                *unchecked_notes(checked),
                *self._cuts.notes(),
                *unknown_notes(self._num_unjudged),
                *missed_notes(self._run.interceptor.num_missed),
                *not_followed_notes(self._recorder.others.num_not_followed),
                *missing_notes(ranks),
                *missing_sentences(),
            ),
        )

    def _saw_all(self) -> bool:
        """Return whether a mistake would have been found; a model alone is not the program that trains it."""
        is_alone = isinstance(self._run.program, Expression)
        is_missed = self._run.interceptor.num_missed or self._errors.number or self._recorder.others.num_not_followed
        is_unknown = is_alone or self._run.has_failed or is_missed or self._num_unjudged
        return not is_unknown and self._window.is_complete

    def _found(self, find: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
        """Yield what is found, up to an error of ours."""
        try:
            yield from find()
        except GradInspectError:
            raise
        except Exception as error:
            self._errors.note(error)

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Record the graph, look for problems before the engine runs, then observe the run."""
        with self._recorder.turn:
            num_watched = len(self._watched)
            try:
                end = self._look_at(call)
            except GradInspectError:
                raise
            except Exception as error:
                self._errors.note(error)
                end = None
                if len(self._watched) == num_watched:
                    self._watched.append(WatchedCall(line=None))
                    self._errors.guard(self._count)(call)
        return None if end is None else self._in_turn(end)

    def _in_turn(self, end: CallEnd) -> CallEnd:
        """Let what comes at the end of a call wait for what other threads note."""

        def finish(returned: object) -> None:
            with self._recorder.turn:
                end.finish(returned)

        def abandon() -> None:
            with self._recorder.turn:
                end.abandon()

        return CallEnd(finish, abandon)

    def _look_at(self, call: EngineCall) -> CallEnd | None:
        if self.has_left:
            return None
        if self._run.is_captured(call):
            self._training.unobserved(call.kind)
            self._cuts.unobserved()
            return None
        is_wanted = self._choice.wants(call)
        if self._is_ending or self._choice.is_exhausted or self._window.is_over():
            self._leave(call.caller)
            return None
        if not has_graph(call.outputs):
            with self._run.process_state.restored():
                self._refused(call)
            return None
        walked = self._run.walk_call(call) if is_wanted else None
        if walked is None:
            self._training.unobserved(call.kind)
            return None
        try:
            if self._custom is not None:
                self._custom.note(walked.graph, self._run.interceptor)
            with self._run.process_state.restored():
                return self.begin(walked, call)
        except BaseException:
            walked.walk.close()
            raise

    def missed(self, kind: CallKind) -> None:
        """Note a call of another thread that is not looked at."""
        with self._recorder.turn:
            self._training.unobserved(kind)
            self._cuts.unobserved()

    def begin(self, walked: WalkedGraph, call: EngineCall) -> CallEnd:
        """Look at a call that is about to start. The walk is closed after the engine has run."""
        graph = walked.graph
        self._count(call, frame_of(graph, graph.nodes[graph.roots[0].node]) if graph.roots else None)
        backward = self._backward_line(graph)
        self._opaque.update(opaque_parts(graph))
        release_wrappers()  # those held only by us
        self._survivors = [earlier for earlier in self._survivors if earlier.are_there()]
        earlier = self._earlier_call(walked, call)
        self._unused.begin(earlier.nodes, earlier.clock, backward)
        watched = WatchedCall(line=backward, nodes=earlier.nodes)
        self._watched.append(watched)
        watched.found += self._before(walked, call)
        search = self._nonfinite.search
        is_explained = _explains(watched.found)
        if any(rule_of(finding.code).stops_run for finding in watched.found):
            self._stop(call.caller)  # on every rank: otherwise the engine would hang
        self._calls.append(earlier)
        self._freed_by += () if call.keeps_graph else (earlier,)
        outputs = [OutputTensor(None, output) for output in call.outputs]
        gradients = GradientMeter(graph, outputs, walked.walk, times=False)
        self._survivors.append(gradients.survivors())
        self._training.begin(walked, call)
        self._call_log.enter_backward()
        unfreeze, guard = self._collector_freeze.begin(), self._errors.guard

        def after(_returned: object) -> None:
            unfreeze()
            guard(self._ran)(watched)
            guard(partial(self._completed, is_explained=is_explained))(watched, gradients, search)
            guard(self._look_at_window)()

        def abandon() -> None:
            unfreeze()
            guard(gradients.close)()
            guard(self._ran)(watched)
            guard(self._failed)(watched, search)
            guard(self._look_at_window)()

        return CallEnd(after, abandon)

    def _completed(
        self, watched: WatchedCall, gradients: GradientMeter, search: PendingSearch | None, *, is_explained: bool
    ) -> None:
        """Look at the gradients of a call that has completed."""
        leaves = dict(gradients.leaves())
        finished = gradients.finish(self._pending(search))
        found = self._settled(search, gradients.other_rows, watched)
        explained = is_explained or self._nonfinite.explains or _explains(found)
        _judge(watched, finished, leaves, self._origins, is_explained=explained)
        self._unmeasured.update(unmeasured_notes(finished))
        self._nonfinite.judged(watched.judged)

    def _failed(self, watched: WatchedCall, search: PendingSearch | None) -> None:
        """Look at the loss of a call that has failed."""
        with unobserved():
            rows = fetched(self._pending(search))
        self._settled(search, rows, watched)

    def _pending(self, search: PendingSearch | None) -> list[PendingFigures]:
        """List what a call that has run has left on devices, to be fetched with the statistics of its gradients."""
        return [*self._training.pending, *(() if search is None else search.figures)]

    def _settled(
        self, search: PendingSearch | None, rows: list[list[list[float]]], watched: WatchedCall
    ) -> list[Finding]:
        """Take what was fetched of that, and return what it shows of the loss."""
        number = len(self._training.pending)
        self._training.settle(rows[:number])
        found = [] if search is None else list(self._nonfinite.settled(search, rows[number:], watched.line))
        watched.found += found
        return found

    def _ran(self, watched: WatchedCall) -> None:
        """Look at what happened inside a call, whether or not it completed."""
        self._call_log.leave_backward()
        self._training.end()
        watched.found += checkpoint_findings(self._checkpoints.take(), watched.line)

    def _refused(self, call: EngineCall) -> None:
        """Look at a call without a graph."""
        self._count(call)
        self._watched.append(WatchedCall(line=None, found=list(self._cuts.refused(call))))
        self._look_at_window()

    def _count(self, call: EngineCall, made: Frame | None = None) -> None:
        """Count a call that is observed; it belongs to a phase by its lines, and by that which made the loss."""
        self._choice.observed.add(call.kind)
        if self._choice.counts(call):
            self._steps.called_backward()
            lines = tuple((frame.f_code, frame.f_lineno) for frame in islice(user_frames(call.caller), 2))
            if self._window.called((*lines, made and (made.file, made.line))):
                self._run.stop_after(SECONDS_WITHOUT_CALL)

    def _look_at_window(self) -> None:
        """Begin to leave the program when enough was seen. NOTE [The end of watching]."""
        if self._is_ending:
            return
        self._is_ending = self._window.is_enough()
        if not self._is_ending:
            return
        self._unused.look()
        self._call_log.on_new_graph = self._leave
        self._run.stop_after(MOST_SECONDS)

    def _waits(self) -> str | None:
        """Say what every call has shown so far, and a later one may not."""
        held_back = held_back_findings(self._watched, self._to_repeat)
        return f"every call had shown {held_back[0].code}" if held_back else None

    def _leave(self, frame: FrameType | None) -> None:
        """Undo our changes to the program, and stop it."""
        if not self.has_left and frame is not None:
            self.has_left = True
            self._recorder.pause()
            self._attached.close()
            self._stop(frame)

    def _before(self, walked: WalkedGraph, call: EngineCall) -> Iterator[Finding]:
        """Find what will make the engine fail, or what it will not notice."""
        graph = walked.graph
        backward = self._backward_line(graph)
        holds = holding(call.frame, self._recorder)
        log = self._call_log
        for find in (
            lambda: self._stale(walked, call, backward, holds),
            lambda: findings_on(BackwardStarts(graph, backward, self._freed_by, holds)),
            lambda: broadcast_findings(graph, log.broadcasts.operators(self._frame), backward),
            lambda: self._between_ranks(walked, call, backward),
            lambda: self._growing(graph, call, backward),
            lambda: self._dropped(walked, backward),
            lambda: self._nonfinite.findings(walked, call, backward),
            lambda: self._cuts.begin(walked, call),
        ):
            yield from self._found(find)

    def _stale(
        self, walked: WalkedGraph, call: EngineCall, backward: Frame | None, holds: HoldsOf
    ) -> Iterator[Finding]:
        """Find saved tensors that were modified."""
        stale = stale_values(walked, call, self._call_log.writes, self._frame)
        self._num_unjudged += stale.num_unknown
        return stale_findings(walked.graph, stale.values, backward, self._calls, holds)

    def _growing(self, graph: Graph, call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        """Compare with earlier iterations of the same loop; autograd.grad() builds on its own results by design."""
        rounds = earlier_rounds(graph, self._calls, backward) if call.kind == "backward" else []
        if rounds:
            kept = kept_history(call, rounds, self._recorder, self._folder) if self._survivors else []
            yield from growing_findings(graph, rounds, kept, backward, holding(call.frame, self._recorder))

    def _dropped(self, walked: WalkedGraph, backward: Frame | None) -> Iterator[Finding]:
        """Report calls that were meant to change what backward is about to go through."""
        nodes = frozenset(number for number in walked.walk.sequence_nrs if number < UNKNOWN_NR)
        leaves = frozenset(map(id, walked.walk.leaves().values()))
        for one in self._call_log.dropped.reached(nodes, leaves):
            called = None if one.frame is None else self._frame(one.frame)
            yield from findings_on(DroppedResult(name=one.name, called=called, backward=backward))

    def _between_ranks(self, walked: WalkedGraph, call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        """Compare this call with those of the other ranks."""
        if self._ranks is not None:
            partners = ranks_that_average(self._recorder, self._ranks.num_ranks)
            if len(partners) > 1:
                mine = summary_of_rank(self._ranks.rank, walked, self._recorder)
                yield from rank_findings(self._ranks.exchange(call.name, mine, partners), backward)

    def _earlier_call(self, walked: WalkedGraph, call: EngineCall) -> EarlierCall:
        """Store what a call is about to run."""
        graph = walked.graph
        return EarlierCall(
            name=call.name,
            frame=self._backward_line(graph),
            root=graph.roots[0].name if graph.roots else None,
            nodes=frozenset(number for number in walked.walk.sequence_nrs if number < UNKNOWN_NR),
            clock=self._recorder.next_number(),
            clocks=dict(self._recorder.others.clocks()),
        )

    def _frame(self, number: int | None) -> Frame | None:
        return None if number is None else self._recorder.frames.record(number, self._folder)

    def _backward_line(self, graph: Graph) -> Frame | None:
        frame = graph.captured_at.frame
        return None if frame is None else graph.frames[frame]


def _explains(findings: Iterable[Finding]) -> bool:
    """Return whether a finding explains what is wrong with the gradients."""
    return any(rule_of(one.code).explains_gradients for one in findings)


def _judge(
    watched: WatchedCall, graph: Graph, leaves: Mapping[int, Tensor], origins: LeafOrigins, *, is_explained: bool
) -> None:
    """Look at the gradients of a call that has completed.

    Args:
        watched: What was found before.
        graph: The graph with its gradients.
        leaves: That of each node that has one.
        origins: How they got their values.
        is_explained: Whether what is wrong with the gradients is known already.
    """
    ended = BackwardEnded(
        graph, broken_gradients(graph), watched.line, is_scaling, lambda number: origins.of(leaves.get(number))
    )
    if not is_explained:
        watched.judged += findings_on(ended)
        watched.zeroed_inside = zeroed_inside(ended) if watched.judged else frozenset()
    rows = [row for row in parameter_rows(graph) if row.node in leaves]
    watched.parameters = {row.name: id(leaves[row.node]) for row in rows}
    watched.learned = {id(leaves[row.node]) for row in rows if row.stats is not None and row.stats.teaches}
    watched.unmeasured = {id(leaves[row.node]): row.unmeasured for row in rows if row.unmeasured is not None}
    watched.is_complete = True


class _CollectorFreeze:
    """Keeps the garbage collector from repeatedly traversing a whole record while backward runs."""

    _is_ours = False
    _is_the_programs = False  # asked for until it is so: what is frozen is counted, one object after the other

    def begin(self) -> Callable[[], None]:
        """Freeze what there is, unless the program does so itself; return a function that undoes it."""
        self._is_the_programs = self._is_the_programs or (not self._is_ours and gc.get_freeze_count() > 0)
        if self._is_ours or self._is_the_programs:
            return lambda: None
        gc.freeze()
        self._is_ours = True
        return self._end

    def _end(self) -> None:
        gc.unfreeze()
        self._is_ours = False
