"""Look for problems in the first backward calls of a program, before and during the engine's run.

NOTE [The end of watching]
What follows the last watched call belongs to it: a step, a `.grad` that is read, an error. So the program is watched
until an operator reads a parameter again, or the next backward call, and only then stopped. A program that does neither
is stopped after some seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from gradinspect.checks.evidence.call_choice import CallChoice, RepeatedCalls, lines_of
from gradinspect.checks.evidence.conclusion import conclusion
from gradinspect.checks.evidence.failures.call import failed_call
from gradinspect.checks.evidence.logs import ProgramLogs
from gradinspect.checks.evidence.optimizer_steps import OptimizerSteps
from gradinspect.checks.evidence.watch_window import LEAST_CALLS, MOST_SECONDS, MOST_WAITING, WatchWindow
from gradinspect.checks.evidence.watched_backwards import WatchedBackwards
from gradinspect.checks.facts.failures import FailedCall
from gradinspect.checks.findings import Findings
from gradinspect.checks.registry import registry
from gradinspect.checks.watched_calls import WatchedCall
from gradinspect.errors import GradInspectError
from gradinspect.graph import CallKind, Frame, Graph, frame_of
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.outputs import has_graph
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.modes import require_function_modes
from gradinspect.torch_api.nodes import require_sequence_numbers
from gradinspect.torch_api.tensors import require_autocast_switch

SECONDS_WITHOUT_CALL = MOST_WAITING


class ChecksObserver(Observer[Findings]):
    """Looks for problems in the first backward calls of one program."""

    reports_missing_names = True
    reports_missed_calls = True
    reports_before_failure = True

    def __init__(  # noqa: PLR0913  # what each of its callers chooses
        self,
        run: Run,
        num_calls: int | None,
        *,
        gradcheck: bool = False,
        is_on: Callable[[str], bool] = lambda _code: True,
        on_graph: Callable[[Graph], object] | None = None,
        leave: Callable[[FrameType], object] | None = None,
        cheap_calls: int | None = None,
    ) -> None:
        """Set up.

        Args:
            run: The run.
            num_calls: How many backward calls to look at; None: until all is known.
            gradcheck: Whether to check the backward of custom Functions numerically.
            is_on: Whether findings of a code are asked for; what no such rule needs may not be recorded.
            on_graph: Gets the graph of each call before the engine runs, and again with its gradients.
            leave: Called with the program's frame when all was observed; by default, nothing more is recorded, and the
                program is stopped.
            cheap_calls: How many calls are watched although all is known, if they cost little.
        """
        require_sequence_numbers("check")
        require_function_modes("check")
        if gradcheck:
            require_autocast_switch()
        self._run = run
        self._recorder = run.recorder
        self._errors = run.recorder.errors
        self._attached = ExitStack()
        needs_values = on_graph is not None or any(
            rule.needs_values and is_on(code) for code, rule in registry().rules.items()
        )
        self._logs = ProgramLogs(run, gradcheck=gradcheck, needs_values=needs_values)
        self._watched = WatchedBackwards(self._logs, run.stop, self._look_at_window, on_graph)
        self._choice = CallChoice(run.request)
        self._steps = OptimizerSteps(run.recorder, self._look_at_window, self._logs.training.may_have_stepped)
        self._window = self._make_window(num_calls, cheap_calls)
        self._repeated = RepeatedCalls(self._window, self._logs, lambda: run.stop_after(SECONDS_WITHOUT_CALL))
        self._steps.on_new = self._repeated.new_optimizer
        self._is_settled = False
        self._failure: FailedCall | None = None
        self._is_ending = False  # NOTE [The end of watching]
        self._leave_program = leave or self._end_recording

    def _make_window(self, num_calls: int | None, cheap_calls: int | None) -> WatchWindow:
        logs = self._logs
        is_fixed = self._run.request.grad is not None or logs.ranks is not None  # ranks must end at the same call
        return WatchWindow(
            num_calls or (LEAST_CALLS if is_fixed else None),
            (self._steps.waits, logs.cuts.waits, self._watched.waits, logs.unused.waits, logs.training.waits),
            lambda: logs.flow.is_half_full,
            lambda: any(True for _ in self._watched.findings()),
            cheap_calls=cheap_calls,
        )

    @property
    def has_enough(self) -> bool:
        """Whether all is known, or the time is over. NOTE [The end of watching]."""
        return self.has_left or self._is_ending

    @property
    def learned(self) -> frozenset[int]:
        """What identifies the parameters that got a finite gradient other than zero in any call."""
        return frozenset[int]().union(*(call.learned for call in self._watched.calls))

    @property
    def unmeasured(self) -> dict[int, str]:
        """Why it is not known whether a parameter got such a gradient, by what identifies it."""
        return {leaf: why for call in self._watched.calls for leaf, why in call.unmeasured.items()}

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Record what the program does, from before it runs until all calls were observed."""
        with self._attached:
            for log in (*self._logs.listeners(), self._steps):
                self._attached.enter_context(log)
            yield

    def ended_by(self, error: BaseException) -> None:
        """Note the error that ends the program, if a call of torch raised it."""

        def note() -> None:
            logs = self._logs
            self._failure = failed_call(error, logs.flow, self._recorder, logs.folder, logs.training.origin)

        self._errors.guard(note)()

    def settle(self) -> None:
        """Look at what is left, and check the custom Functions: the program has ended."""
        if self._is_settled:
            return
        self._is_settled = True
        self._errors.guard(self._look_at_the_rest)()

    def _look_at_the_rest(self) -> None:
        self._logs.calls.on_new_graph = None
        with self._recorder.turn:
            if not self._is_ending:
                self._logs.unused.look_at_the_end()
                if self._run.stopper.is_stopping:
                    self._window.is_over()
        self._logs.custom.check()

    def result(self) -> Findings | None:
        """Return what was found so far; None before the first call."""
        self._window.is_left = self.has_left or self._run.stopper.is_stopping
        return conclusion(
            self._run,
            self._logs,
            self._watched,
            window=self._window,
            choice=self._choice,
            failure=self._failure,
        )

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Record the graph, look for problems before the engine runs, then observe the run."""
        with self._recorder.turn:
            num_watched = len(self._watched.calls)
            try:
                end = self._look_at(call)
            except GradInspectError:
                raise
            except Exception as error:
                self._errors.note(error)
                end = None
                if len(self._watched.calls) == num_watched:
                    self._watched.calls.append(WatchedCall(line=None))
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
            self._logs.unobserved(call.kind)
            return None
        is_wanted = self._choice.wants(call)
        if self._is_ending or self._is_exhausted() or self._window.is_over():
            self._leave(call.caller)
            return None
        if self._passes(call):
            return None
        if not has_graph(call.outputs):
            with self._run.process_state.restored():
                self._refused(call)
            return None
        walked = self._run.walk_call(call) if is_wanted else None
        if walked is None:
            self._logs.training.unobserved(call.kind)
            return None
        try:
            self._repeated.watched(walked.walk.leaves().values())
            self._logs.custom.note(walked.graph, self._run.interceptor)
            with self._run.process_state.restored():
                return self.begin(walked, call)
        except BaseException:
            walked.walk.close()
            raise

    def _passes(self, call: EngineCall) -> bool:
        """Return whether a call repeats others, and is only counted. NOTE [Repeated calls] in `watch_window`."""
        with self._run.process_state.restored():
            if not self._repeated.passes(call):
                return False
        self._choice.observed.add(call.kind)
        if self._window.has_passed_all():
            self._repeated.wake()
            self._look_at_window()
        return True

    def _is_exhausted(self) -> bool:
        return self._choice.is_exhausted(lambda: self._steps.waits() is not None)

    def missed(self, kind: CallKind) -> None:
        """Note a call of another thread that is not looked at."""
        with self._recorder.turn:
            self._logs.unobserved(kind)

    def begin(self, walked: WalkedGraph, call: EngineCall) -> CallEnd:
        """Look at a call that is about to start. The walk is closed after the engine has run."""
        graph = walked.graph
        self._count(call, frame_of(graph, graph.nodes[graph.roots[0].node]) if graph.roots else None)
        return self._watched.begin(walked, call)

    def _refused(self, call: EngineCall) -> None:
        """Look at a call without a graph."""
        self._count(call)
        self._watched.calls.append(WatchedCall(line=None, found=list(self._logs.cuts.refused(call))))
        self._look_at_window()

    def _count(self, call: EngineCall, made: Frame | None = None) -> None:
        """Count a call that is observed; it belongs to a phase by its lines, and by that which made the loss."""
        self._choice.observed.add(call.kind)
        if self._choice.counts(call):
            self._steps.called_backward()
            if self._window.called((lines_of(call.frame), made and (made.file, made.line))):
                self._run.stop_after(SECONDS_WITHOUT_CALL)

    def _look_at_window(self) -> None:
        """Start leaving the program when enough was seen. NOTE [The end of watching]."""
        if self._is_ending or self._repeated.is_resting:
            return
        if self._window.is_enough():
            self.end_watching()

    def end_watching(self) -> None:
        """Leave the program before the next graph is made, whatever is not known yet. NOTE [The end of watching]."""
        self._is_ending = True
        self._logs.unused.look()
        self._logs.calls.on_new_graph = self._leave
        self._run.stop_after(MOST_SECONDS)

    def timed_out(self, seconds: float) -> None:
        """Note that the program is stopped because no second call came."""
        self._window.timed_out(seconds)

    def _leave(self, frame: FrameType | None) -> None:
        """Undo our changes to the program, and leave it."""
        if not self.has_left and frame is not None:
            self.has_left = True
            with self._run.stopper.withheld():
                self._attached.close()
                self._leave_program(frame)

    def _end_recording(self, frame: FrameType) -> None:
        self._recorder.pause()
        self._run.interceptor.leave()
        self._run.stop(frame)
