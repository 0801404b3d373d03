"""All headlines from one run: the first calls are checked, and the memory of the first steps is measured meanwhile.

NOTE [Memory of our own]
What a check computes must not be counted as memory of the program. So all that we compute with tensors runs in a range
of the profiler that says so: what is allocated in it is ours. Where the program runs already, as in a notebook, what is
alive is known at the first backward call, and the step that begins after it is the first one that is seen as a whole. A
program that ends before has a bound: what is there for certain as a backward begins or ends.

NOTE [One call and no more]
A program may do other things for minutes before it calls backward again: evaluate, save, draw samples. The headlines
are those of one call then. As steps may be slow themselves, the second one has several times as long as it took to
come to the first.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import Final

import torch

from gradinspect.analyses.memory.alive import AliveBytes, Moment
from gradinspect.analyses.memory.step import StepMemory
from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.checks.evidence.watch_window import FEW_CALLS, MOST_SECONDS, MOST_WAITING
from gradinspect.checks.overview import OtherCall, Overview
from gradinspect.errors import GradInspectError
from gradinspect.graph import CallKind, Graph
from gradinspect.observers.memory.alive_now import measure_alive
from gradinspect.observers.memory.step_memory_observer import StepMemoryObserver
from gradinspect.observers.memory.storage_purposes import Label, Purposes, held_before
from gradinspect.recording.names.variables import variables_from
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.devices.own_work import own_work

STEPS: Final = 2  # the state of optimizers is there in the second one
MOST_MARKS: Final = 400_000  # two for each function of torch that is called: the profiler keeps all of them
MOST_WAITING_OF_ALL: Final = 5.0  # times as long as before the first call: NOTE [One call and no more]
TOO_SHORT: Final = "No whole step was measured: the program ended before one was over."
TOO_SLOW: Final = f"No whole step was measured: one after those that were checked took more than {MOST_SECONDS:.0f} s."
NOT_FOLLOWED: Final = "The memory of a step could not be followed"
ONE_CALL: Final = "No whole step was measured: after the first backward call, no other one came within {:,.0f} s."
IN_A_THREAD: Final = "No whole step was measured: another thread than the one that runs the program calls backward."


class OverviewObserver(Observer[Overview]):
    """Checks the first calls of a program, and follows the memory of its first whole steps meanwhile."""

    reports_missing_names = True
    reports_missed_calls = True
    reports_before_failure = True

    def __init__(self, run: Run, *, is_under_way: bool = False) -> None:
        """Set up.

        Args:
            run: The run.
            is_under_way: Whether its models are there already, so that the first step is not seen as a whole.
        """
        self._run = run
        self._is_under_way = is_under_way
        self._graph: Graph | None = None
        self._opened: Graph | None = None  # the same with what is inside compiled nodes
        self._calls: dict[tuple[str, int], OtherCall] = {}  # the first on each line
        self._call: EngineCall | None = None  # that is looked at
        self._checks = ChecksObserver(run, None, on_graph=self._take, leave=self._leave, cheap_calls=FEW_CALLS)
        self._memory: StepMemoryObserver | None = None
        self._following = ExitStack()  # while the memory is followed
        self._no_memory = TOO_SHORT
        self._least: AliveBytes | None = None  # that the peak can be
        self._num_measured = 0  # calls
        self._num_calls = 0
        self._timed_out_after: float | None = None  # seconds for a second call
        self._began = monotonic()
        self._thread = get_ident()  # that the program runs in
        self._others_train = False  # other threads have called backward

    @property
    def has_left(self) -> bool:  # type: ignore[override]  # it changes
        """Whether all headlines are there."""
        return self._checks.has_left and self._is_measured

    @property
    def has_enough(self) -> bool:
        """Whether nothing more need run."""
        return self._checks.has_enough and self._is_measured

    @property
    def _is_measured(self) -> bool:
        """Whether no more can become known of the memory of a step."""
        return self._no_memory != TOO_SHORT or (self._memory is not None and self._memory.has_left)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Let the check look, and follow the memory. NOTE [Memory of our own]."""
        with self._following, self._checks.attached():
            if not self._is_under_way:
                self._follow(None)
            yield

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Check a call, and follow the memory of the step that it belongs to."""
        self._note_thread()
        self._num_calls += 1
        if self._num_calls == 1:
            self._limit_waiting()
        followed = self._followed(call)
        checked: CallEnd | None = None
        if not self._checks.has_left:
            self._call = call
            with own_work.range() or nullcontext():
                checked = self._checks.on_call(call)
            self._call = None
            if not self._checks.has_left:
                checked = self._measured(call, checked)
        return _both(checked, followed)

    def _limit_waiting(self) -> None:
        """Stop a program that does other things for long before a second call. NOTE [One call and no more]."""
        seconds = max(MOST_WAITING, (monotonic() - self._began) * MOST_WAITING_OF_ALL)

        def is_waiting() -> bool:
            if self._num_calls == 1:
                self._timed_out_after = seconds
                self._checks.timed_out(seconds)
            return self._num_calls == 1

        self._run.stop_after(seconds, is_waiting)

    def end_checks(self) -> None:
        """Check no more calls, and follow the memory of the steps that come."""
        if not self._checks.has_enough:
            self._checks.end_watching()

    def missed(self, kind: CallKind) -> None:
        """Note a call that is not looked at."""
        self._note_thread()
        self._checks.missed(kind)

    def _note_thread(self) -> None:
        self._others_train = self._others_train or get_ident() != self._thread

    def _is_alone(self) -> bool:
        """Return whether this is the thread that the profiler ends in, and none frees gradients that we would hold."""
        return get_ident() == self._thread and not (self._others_train and self._run.recorder.others.are_running())

    def ended_by(self, error: BaseException) -> None:
        """Note the error that ends the program."""
        self._checks.ended_by(error)

    def settle(self) -> None:
        """Take what there is: the program has ended."""
        self._checks.settle()
        if self._memory is not None:
            self._memory.settle()

    def result(self) -> Overview | None:
        """Return what was seen so far; None before the first call."""
        found = self._checks.result()
        if found is None or self._graph is None:
            return None
        memory = self._whole_step()
        why = "" if memory is not None else self._why_no_memory()
        return Overview(
            source=self._run.request.label, graph=self._graph, opened=self._opened, findings=found,
            other_calls=self._other_calls(self._graph),
            step_memory=memory, whole_steps=self._num_whole if memory is not None else 0, no_memory=why,
            least_memory=None if memory is not None else self._least,
        )  # fmt: skip

    def _other_calls(self, graph: Graph) -> tuple[OtherCall, ...]:
        """Return the calls on other lines than that of a graph."""
        place = graph.captured_at.frame
        shown = None if place is None else (graph.frames[place].file, graph.frames[place].line)
        return tuple(call for line, call in self._calls.items() if line != shown)

    def _why_no_memory(self) -> str:
        """Say why no whole step was followed."""
        if self._memory is not None and self._memory.problem is not None:
            return f"{NOT_FOLLOWED}: {self._memory.problem}"
        if self._timed_out_after is not None:
            return ONE_CALL.format(self._timed_out_after)
        is_stopped = self._no_memory == TOO_SHORT and self._run.stopper.is_stopping
        return TOO_SLOW if is_stopped else self._no_memory

    def _take(self, graph: Graph) -> None:
        """Keep the first graph of a backward() call, or of an autograd.grad() call if there is no other."""
        known, new = self._graph, graph.captured_at
        if new.kind == "backward" and new.number is not None and new.frame is not None:
            frame = graph.frames[new.frame]
            call = OtherCall(number=new.number, file=frame.file, line=frame.line, code=frame.code)
            self._calls.setdefault((frame.file, frame.line), call)
        if known is None or (known.captured_at.kind == "grad" != new.kind) or known.captured_at == new:
            self._graph = graph
            if graph.gradients is None:  # it has not run
                self._opened = self._opened_graph(graph)

    def _opened_graph(self, graph: Graph) -> Graph | None:
        """Record it again with what is inside compiled nodes, if it has any."""
        if self._call is None or not any(node.kind == "compiled" for node in graph.nodes):
            return None
        recorded = self._run.record_call(self._call, opens_compiled=True)
        return None if recorded is None else recorded.graph

    def _measured(self, call: EngineCall, end: CallEnd | None) -> CallEnd | None:
        """Measure what is alive as a call that is looked at begins, and as it ends."""
        if end is None or self._num_measured == FEW_CALLS:
            return end
        self._num_measured += 1
        self._note_alive(self._held(call), "backward begins")

        def finish(returned: object) -> None:
            with own_work.range() or nullcontext():
                end.finish(returned)
            self._note_alive(held_before(self._run.recorder), "backward ends")

        return CallEnd(finish, end.abandon)

    def _note_alive(self, labels: Iterator[Label], at: Moment) -> None:
        others = self._run.recorder.others
        if others.num_calls and others.are_running():  # what they free meanwhile must have no object of ours
            return
        try:
            with self._run.process_state.restored():
                alive = measure_alive(labels, at)
        except Exception as error:  # an error of ours must not reach the program
            self.failed(error)
            return
        if self._least is None or alive.num_bytes > self._least.num_bytes:
            self._least = alive

    def _leave(self, frame: FrameType) -> None:
        """Leave the program once all is checked, unless its memory is still followed."""
        if self._is_measured:
            self._run.recorder.pause()
            self._run.interceptor.leave()
            self._run.stop(frame)

    def _followed(self, call: EngineCall) -> CallEnd | None:
        """Follow the memory until the steps are over."""
        if self._no_memory == TOO_SHORT and not self._is_alone():
            self._no_memory = IN_A_THREAD
        if self._memory is None and self._no_memory == TOO_SHORT:
            self._follow(self._held(call))
        if self._is_measured or self._memory is None:
            self._stop_following()
            if self._checks.has_left:
                self._run.stop(call.caller)
            return None
        return self._memory.on_call(call)

    def _follow(self, held: Iterator[Label] | None) -> None:
        """Begin to follow the memory."""
        try:
            memory = StepMemoryObserver(self._run, STEPS + self._is_under_way, held, most_marks=MOST_MARKS)
            self._following.enter_context(memory.attached())
        except (GradInspectError, RuntimeError) as error:  # as where the program profiles itself
            self._no_memory = f"{NOT_FOLLOWED}: {error}"
        else:
            self._memory = memory

    def _stop_following(self) -> None:
        if get_ident() != self._thread:
            return
        try:
            with self._run.process_state.restored():
                self._following.close()
        except Exception as error:  # an error of ours must not reach the program
            self.failed(error)

    def _held(self, call: EngineCall) -> Iterator[Label]:
        """Label what is alive already: models and optimizers, the graph of the call, and the program's variables."""
        yield from held_before(self._run.recorder)
        outputs = self._run.outputs_of(call)
        tensors = (output.value for output in outputs if isinstance(output.value, torch.Tensor))
        yield from (Label(tensor, "temporary") for tensor in tensors)
        roots = [output.edge[0] for output in outputs]
        yield from Purposes(self._run.recorder).of_graph(roots, lambda: list(variables_from(call.frame)))

    @property
    def _num_whole(self) -> int:
        """How many steps were seen as a whole."""
        return 0 if self._memory is None else max(self._memory.num_whole - self._is_under_way, 0)

    def _whole_step(self) -> StepMemory | None:
        memory = self._memory
        if memory is None or memory.problem is not None or self._no_memory != TOO_SHORT:
            return None
        if not self._num_whole:
            return None
        try:
            return memory.result()
        except GradInspectError as error:  # the program has begun to profile itself
            self._no_memory = f"{NOT_FOLLOWED}: {error.message}"
            return None


def _both(first: CallEnd | None, second: CallEnd | None) -> CallEnd | None:
    """Do two things when a call has ended."""
    ends = [end for end in (first, second) if end is not None]

    def finish(returned: object) -> None:
        for end in ends:
            end.finish(returned)

    def abandon() -> None:
        for end in ends:
            end.abandon()

    return CallEnd(finish, abandon) if ends else None
