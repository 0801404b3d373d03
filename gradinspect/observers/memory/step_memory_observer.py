"""Follow the memory of whole training steps, on fake tensors or real ones: what is alive, who made it, and why.

NOTE [Optimizers in turn]
The peak is that of a step where the state of the optimizer is there, so two steps are watched. Two optimizers that step
in turn, as those of a GAN, need as many each. So watching goes on until each that has stepped has done so as often as
was asked for; not longer than `MOST_STEPS`, for an optimizer that steps once in many times. One of other parameters
that has not stepped at all may never do so, or do so once in five times, as the generator's in a WGAN: it is waited for
until `MOST_WAITED` steps were made, and is said to be missing from the figures if it has not stepped by then.

NOTE [Optimizers that step before training]
A program may try out its schedule of learning rates first, with tens of thousands of steps of an optimizer that has no
gradients. What each of them leaves behind is not looked at: only what the optimizer holds when training begins.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import FrameType
from typing import Any, Protocol

import torch
from msgspec.structs import replace
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.analyses.memory.step import StepMemory
from gradinspect.errors import GradInspectError
from gradinspect.observers.memory.allocator_tracker import AllocatorTracker
from gradinspect.observers.memory.caching_allocator import CachingAllocator
from gradinspect.observers.memory.collective_log import CollectiveLog
from gradinspect.observers.memory.compiled_steps import CompiledSteps
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.kernel_scratch import OF_SPARSE
from gradinspect.observers.memory.step_memory_record import record_step_memory
from gradinspect.observers.memory.step_phases import StepPhases
from gradinspect.observers.memory.storage_ledger import Allocation, StorageMaker
from gradinspect.observers.memory.storage_purposes import Label, Purposes
from gradinspect.observers.memory.storage_tracker import StorageTracker
from gradinspect.observers.operator_calls import OperatorCalls
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.names.variables import variables_from
from gradinspect.recording.outputs import has_graph
from gradinspect.recording.transparency.handlers import outside_handlers
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.devices.accelerators import has_expandable_segments
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.fakes import is_on_meta
from gradinspect.torch_api.hooks import optimizer_steps
from gradinspect.torch_api.nodes import require_sequence_numbers
from gradinspect.torch_api.tensors import plain_tensors_only, require_storage_keys

MOST_STEPS = 12  # NOTE [Optimizers in turn]
MOST_WAITED = 6
MOVED = "--device has moved the model before the first step: until then it counts where it was built."
WAITING = "An optimizer has not stepped in {} steps, so what it needs is missing here: ask for more with --steps."
ON_META = "The loss is on the meta device, where tensors have no memory: what is there is counted as 0 B."


def _trained_by(optimizer: Optimizer) -> list[torch.Tensor]:
    """List the parameters of an optimizer that get gradients."""
    groups = getattr(optimizer, "param_groups", [])  # one that is made just now, or wraps another, has none
    return [one for group in groups for one in group["params"] if one.requires_grad]


class Tracker(AbstractContextManager["Tracker"], Protocol):
    """Keeps the ledger while the program runs."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the result must know."""

    def label(self, labels: Iterable[Label]) -> None:
        """Note what the memory of some tensors is for."""

    def moved_on(self) -> None:
        """Note that another part of the step has begun."""

    def settle(self) -> None:
        """Bring the ledger up to date: nothing more is to come."""


class StepMemoryObserver(Observer[StepMemory]):
    """Watches the first steps of a program."""

    takes_any_call = True

    def __init__(
        self,
        run: Run,
        num_steps: int,
        before: Iterable[Label] | None = None,
        tracker: Tracker | None = None,
        *,
        most_marks: int | None = None,
    ) -> None:
        """Start before the program does, or with what a program that runs already holds.

        Args:
            run: The program.
            num_steps: To watch.
            before: What is alive already, and what its memory is for; None: the program begins later.
            tracker: Follows the steps in place of one that keeps the ledger.
            most_marks: After which to stop: a program may do much before it trains, or between steps.
        """
        require_sequence_numbers("fit")
        require_storage_keys("fit")
        self._run = run
        self._asked = num_steps
        self._stepped = Counter[int]()  # optimizers, by their id: how often. NOTE [Optimizers in turn]
        self._have_stepped = set[int]()  # the same, also of those that step inside backward
        self._waits = False  # for one that has not
        # NOTE [Optimizers that step before training]; by identity, as a class may have a hash of its own
        self._early: MutableMapping[Optimizer, None] = WeakIdKeyDictionary()
        allocator = partial(CachingAllocator, has_expandable_segments) if run.request.counts_as_cuda else None
        self.ledgers = DeviceLedgers(num_steps, allocator)
        self._is_whole_program = before is None  # else there are optimizers that it has not seen
        self._tracker: Tracker = tracker or self._ledger_of(run, before or (), most_marks)
        self._sent = None if run.request.job is None else CollectiveLog(self._maker, run.request.job.world_size)
        self._purposes = Purposes(run.recorder)
        self._is_on_meta = False  # of a loss
        self._unseen = CompiledSteps()
        self._caller: int | None = None  # the line that called backward
        self.phases = StepPhases()  # after the tracker, which has run a backward of its own

    def _ledger_of(self, run: Run, before: Iterable[Label], most_marks: int | None) -> Tracker:
        if run.fake is None:
            return AllocatorTracker(self.ledgers, self._maker_now, run.recorder, before, most_marks)
        return StorageTracker(
            self.ledgers,
            self._maker,
            counts_numbers=not run.request.counts_as_cuda,
            tells_scratch=run.fake.tell_scratch,
            scratch=run.request.scratch,
        )

    def allocations_of(self, tensors: Iterable[torch.Tensor]) -> list[Allocation]:
        """Return what is known of the memory of some tensors, on fake tensors."""
        return self._tracker.allocations_of(tensors) if isinstance(self._tracker, StorageTracker) else []

    @property
    def measured_scratch(self) -> Mapping[str, int]:
        """What was measured of kernels, on fake tensors, for later runs of the program."""
        return self._tracker.measured_scratch if isinstance(self._tracker, StorageTracker) else {}

    @property
    def is_counting(self) -> bool:
        """Whether the steps that were asked for are still running."""
        return self.ledgers.is_open

    @property
    def is_partial(self) -> bool:  # type: ignore[override]  # it changes
        """Whether steps that were asked for are still to come."""
        phases = self.phases
        return phases.step < self._asked or (phases.step == self._asked and not phases.is_between)

    @property
    def has_left(self) -> bool:  # type: ignore[override]  # it changes
        """Whether all steps that were asked for are complete."""
        return not self.is_partial

    @property
    def num_watched(self) -> int:
        """How many steps were watched, as far as the program came."""
        return min(self.phases.step, self._asked)

    @property
    def num_whole(self) -> int:
        """How many steps are over."""
        phases = self.phases
        return max(min(phases.step - (not phases.is_between), self._asked), 0)

    @property
    def is_before_last(self) -> bool:
        """Whether the last step that was asked for is the next one."""
        return self.phases.step == self._asked - 1 and self.phases.is_between

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Follow storages, and listen to the steps of optimizers."""
        is_here = self._run.recorder.records_here
        steps = optimizer_steps(before=self._before_step, after=self._after_step, note=self.failed, is_here=is_here)
        self._run.recorder.on_compiled.append(self._on_compiled)
        with steps, self._tracker, self._collectives():
            yield

    def _collectives(self) -> AbstractContextManager[object]:
        return nullcontext() if self._sent is None else OperatorCalls(self._sent.add, note=self.failed)

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at a backward call; the program is stopped at the first one after as many steps as were asked for."""
        if not has_graph(call.outputs):
            return None
        self._is_on_meta = self._is_on_meta or any(
            is_on_meta(one) for one in call.outputs if isinstance(one, torch.Tensor)
        )
        if self._run.recorder.has_run_compiled:
            self._tracker.moved_on()  # in compiled code, nothing else has seen the nodes of the forward pass
        self.phases.call_begins()
        if self.phases.step > self._asked:
            self._run.stop(call.caller)
            return None
        self._caller = self._run.recorder.frames.number_of(call.frame)
        self._tracker.moved_on()
        roots = [output.edge[0] for output in self._run.outputs_of(call)]
        with self._run.process_state.restored():
            for optimizer in tuple(self._early):
                self._label(self._purposes.of_optimizer(optimizer))
            self._early.clear()
            self._label(self._purposes.of_graph(roots, lambda: list(variables_from(call.frame))))
        return CallEnd(lambda _returned: self._call_ended(call), lambda: self._call_ended(call))

    def settle(self) -> None:
        """Take what there is: the program has ended, or is about to be reported."""
        self._tracker.settle()

    def has_result(self) -> bool:
        """Return whether there was a backward call."""
        counts = self._run.interceptor.counts
        return bool(self.phases.step and counts.backwards + counts.grads)

    def result(self) -> StepMemory | None:
        """Return what was seen; None before the first backward call."""
        if not self.has_result():
            return None
        self._require_measured_steps()
        sent = () if self._sent is None else self._sent.sent
        memory = record_step_memory(self.ledgers, self.phases, self._run, self._purposes.names, sent)
        request = self._run.request
        notes = [*memory.notes, *self._tracker.notes]
        notes += [ON_META] if self._is_on_meta else []
        notes += [WAITING.format(self.num_watched)] if self._waits and not self.is_partial else []
        notes += [MOVED] if request.device is not None and not request.fake else []
        return replace(memory, notes=tuple(notes), is_least=OF_SPARSE in notes)

    def _require_measured_steps(self) -> None:
        """Refuse to report steps that the program's own profiler has measured instead of ours."""
        if not isinstance(self._tracker, AllocatorTracker) or self._tracker.has_measured(self._asked):
            return
        if self._tracker.is_full:
            raise GradInspectError(
                f"The program calls more of torch's functions before {self._asked} steps are over than are followed.",
                "Measure the steps alone, with --real, or predict them.",
            )
        if self._tracker.is_lost:
            raise GradInspectError(
                "Another thread of the program starts torch's profiler, of which a process has one.",
                "Leave that profiler out, or predict the steps: without --real.",
            )
        raise GradInspectError(
            f"The program starts torch's profiler, of which a process has one, within the first {self._asked} steps.",
            "Leave the profiler out of these steps, or predict them: without --real.",
        )

    def _maker_now(self) -> StorageMaker:
        """Say what runs outside the engine now."""
        return self._maker("", None)

    def _maker(self, op: str, node: Any) -> StorageMaker:
        """Say what runs now."""
        self.phases.operator()
        recorder, phases = self._run.recorder, self.phases
        call = recorder.running_call
        if node is None or call is not None:
            frame = recorder.frames.number_of(sys._getframe(1))
            if recorder.frames.has_handlers:
                frame = recorder.frames.number_of(outside_handlers(sys._getframe(1)))
            if frame is None and phases.phase == "backward":  # a thread of a device runs none of the program's lines
                frame = self._caller
            return StorageMaker(phases.step, phases.phase, op, call=call, frame=frame)
        return StorageMaker(phases.step, phases.phase, op, node.name(), recorder.others.identity_of(node))

    def _call_ended(self, call: EngineCall) -> None:
        self.phases.call_ends(call)
        self._tracker.moved_on()
        self._label(self._purposes.after_call())
        if self._run.recorder.has_run_compiled:
            self._guarded(self._unseen.backward_ended)
        self._step_may_end()

    @uncompiled
    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._guarded(lambda: self._label_optimizer(optimizer))
        self.phases.optimizer_begins()
        self._tracker.moved_on()

    @uncompiled
    def _after_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self.phases.optimizer_ends()
        self._have_stepped.add(id(optimizer))
        if self.phases.phase != "backward":  # a step of one parameter
            self._stepped[id(optimizer)] += 1
        self._guarded(lambda: self._label_optimizer(optimizer))
        self._tracker.moved_on()
        self._step_may_end()

    def _on_compiled(self, is_entered: bool, _caller: FrameType | None) -> None:  # as the recorder calls it
        if not is_entered and self.phases.phase == "after backward":
            self._guarded(self._note_unseen_steps)

    def _note_unseen_steps(self) -> None:
        """End a step if optimizers have stepped in the compiled code that has just returned."""
        for optimizer in self._unseen.stepped():
            self._label_optimizer(optimizer)
            self.phases.optimizer_has_stepped()
            self._have_stepped.add(id(optimizer))
            self._stepped[id(optimizer)] += 1
        self._tracker.moved_on()
        self._step_may_end()

    def _step_may_end(self) -> None:
        if not self.phases.is_between:
            return
        if self.phases.step == self._asked < MOST_STEPS and self._is_turn_open():
            self._asked += 1
            self.ledgers.go_on()
        self.ledgers.may_end(self.phases.step)

    def _is_turn_open(self) -> bool:
        """Return whether another optimizer has not stepped as often as was asked for. NOTE [Optimizers in turn]."""
        if self._stepped and self._is_whole_program:
            self._guarded(self._look_for_waiting)
        is_waited_for = self._waits and self.phases.step < MOST_WAITED
        return bool(self._stepped) and (is_waited_for or min(self._stepped.values()) < self.ledgers.num_asked)

    def _look_for_waiting(self) -> None:
        """Find out whether an optimizer of parameters that no other one has changed is still to step."""
        optimizers = live_optimizers()
        stepped = [one for one in optimizers if id(one) in self._have_stepped]
        with plain_tensors_only():
            changed = {id(parameter) for optimizer in stepped for parameter in _trained_by(optimizer)}
            self._waits = any(id(one) not in changed for optimizer in optimizers for one in _trained_by(optimizer))

    def _label_optimizer(self, optimizer: Optimizer) -> None:
        """Label what an optimizer holds, or do so when training begins."""
        if self.phases.step:
            self._label(self._purposes.of_optimizer(optimizer))
        else:
            self._early[optimizer] = None

    def _guarded(self, label: Callable[[], None]) -> None:
        try:
            label()
        except Exception as error:  # an error of ours must not reach the program
            self.failed(error)

    def _label(self, labels: Iterable[Label]) -> None:
        with plain_tensors_only():
            self._tracker.label(labels)
