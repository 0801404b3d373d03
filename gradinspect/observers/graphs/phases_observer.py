"""Record the graph of each different backward call of a training step: those of D and of G of a GAN, each once.

NOTE [The end of a step]
Calls are the same if the program makes them on the same lines, callers included. A step is seen whole when the first
call comes again and every optimizer that holds something to learn has stepped: a generator may step once in five times.
Where that does not happen, the program goes on for `MOST_REPEATS` calls that are not new.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import islice
from types import CodeType, FrameType

from torch.optim.optimizer import Optimizer

from gradinspect.graph import CaptureKind, Graph, with_other_grads
from gradinspect.observers.graphs.graph_observer import with_loss
from gradinspect.recording.frames import line_at, user_frames
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import OutputTensor
from gradinspect.runner.engine import EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Recorded, Run
from gradinspect.torch_api.hooks import is_step_hooked, optimizer_steps
from gradinspect.torch_api.tensors import plain_tensors_only

MOST_REPEATS = 12
MOST_CALLERS = 64

Place = tuple[tuple[CodeType, int], ...]


class SteppedOptimizers:
    """Which optimizers have stepped."""

    def __init__(self) -> None:
        """Start before any step."""
        self._stepped: set[int] = set()  # identities

    def stepped(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        """Note a step."""
        self._stepped.add(id(optimizer))

    def have_all_stepped(self) -> bool:
        """Whether each optimizer with something to learn has stepped."""
        with plain_tensors_only():
            return all(id(one) in self._stepped or not _can_step(one) for one in live_optimizers())


class PhasesObserver(Observer[tuple[Graph, ...]]):
    """Records the first call on each line of the program, until a step is seen whole."""

    needs_backward = False
    reports_missing_names = True

    def __init__(self, run: Run) -> None:
        """Set up."""
        self._run = run
        self._graphs: list[Graph] = []
        self._places: dict[Place, None] = {}
        self._num_repeats = 0  # calls since the last new one
        self._has_come_again = False  # the first call
        self._steps = SteppedOptimizers()
        self._is_done = False

    def attached(self) -> AbstractContextManager[None]:
        """Listen to the steps of optimizers."""
        recorder = self._run.recorder
        return optimizer_steps(
            after=self._steps.stepped,
            note=recorder.errors.note,
            turn=recorder.turn,
            is_here=recorder.records_here,
        )

    def on_call(self, call: EngineCall) -> None:
        """Record a call that is new, or stop the program if it has begun its next step."""
        if self._is_done or not self._run.is_wanted(call):
            return
        place = _place_of(call.frame)
        if place in self._places:
            self._repeat(place, call)
            return
        recorded = with_loss(self._run.record_call(call, opens_compiled=True))
        if recorded is not None:
            self._places[place] = None
            self._graphs.append(recorded.graph)
            self._num_repeats = 0

    def _repeat(self, place: Place, call: EngineCall) -> None:
        self._num_repeats += 1
        self._has_come_again = self._has_come_again or place == next(iter(self._places))
        if self._num_repeats < MOST_REPEATS and not (self._has_come_again and self._steps.have_all_stepped()):
            return
        self._is_done = True
        self._run.stop_recording()
        self._run.stop(call.caller)

    def at_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Record the graph of the remaining tensors."""
        recorded: Recorded | None = self._run.record(kind, outputs, variables=variables, opens_compiled=True)
        self._graphs += [] if recorded is None else [recorded.graph]

    def result(self) -> tuple[Graph, ...] | None:
        """Return the graphs, in the order of their calls."""
        return tuple(self._graphs) or None

    def with_other_grads(self, result: tuple[Graph, ...], number: int) -> tuple[Graph, ...]:
        """Store the number in the first graph."""
        return (with_other_grads(result[0], number), *result[1:])


def _place_of(frame: FrameType | None) -> Place:
    """Return the lines of the program that a call is made on: its own, that of its caller, and so on."""
    return tuple((user.f_code, line_at(user)) for user in islice(user_frames(frame), MOST_CALLERS))


def _can_step(optimizer: Optimizer) -> bool:
    """Return whether a step of an optimizer would be seen, and has something to do."""
    try:
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        return is_step_hooked(optimizer) and any(tensor.requires_grad for tensor in tensors)
    except Exception:  # an object of the program
        return False
