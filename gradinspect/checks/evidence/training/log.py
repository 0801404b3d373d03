"""What a program does around its backward calls, as facts for the rules about training loops.

It listens to torch's hooks of optimizer steps and of registrations, to a few methods that have no hook, and to the
calls of torch functions that touch a gradient. Per backward call it looks at each parameter once.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from inspect import unwrap
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from msgspec.structs import replace
from torch import nn
from torch.amp import GradScaler
from torch.optim import Optimizer, lr_scheduler
from torch.utils.data import DataLoader

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.in_place.lagging_buffers import LaggingBuffersLog
from gradinspect.checks.evidence.in_place.lost_updates import living, lost_fact
from gradinspect.checks.evidence.in_place.refilled import RefilledLog
from gradinspect.checks.evidence.in_place.shared_weights import SharingWeights
from gradinspect.checks.evidence.in_place.unmoved import Unmoved, unmoved_fact
from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.checks.evidence.optimizer_steps import heard_steps
from gradinspect.checks.evidence.rates.schedules import ScheduleLog
from gradinspect.checks.evidence.training.frozen import Frozen, frozen_by_accident
from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.evidence.training.made_anew import MadeAnew, rebound
from gradinspect.checks.evidence.training.models import (
    Repeated,
    calls_backward_itself,
    own_backwards,
    repeated_layers,
    unloaded,
)
from gradinspect.checks.evidence.training.modes import Modes
from gradinspect.checks.evidence.training.optimizers import Optimizers, SeenOptimizer, largest_rate, lost_eps
from gradinspect.checks.evidence.training.other_losses import first_uses
from gradinspect.checks.evidence.training.parameters import ParameterLog
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.evidence.training.scaled_steps import ScaledLosses
from gradinspect.checks.evidence.training.unheld import Unheld, unheld
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.dropped_updates import dropped_updates, forgotten
from gradinspect.checks.evidence.values.emptied import EmptiedIterators
from gradinspect.checks.evidence.values.torch_calls import GradientTouch
from gradinspect.checks.facts.backward_calls import LastStep
from gradinspect.checks.facts.training import (
    ForgottenAssignment,
    FrozenByAccident,
    KeptGradient,
    NothingLoaded,
    OptimizerMisuse,
    OptimizerMisuseKind,
    SharedLayer,
    UncalledBackward,
    UnheldParameters,
    UnmovedParameters,
)
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.checks.findings import caller_of_helper
from gradinspect.graph import CallKind, Frame
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.frames import source_line
from gradinspect.recording.names.names import all_parameters
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import assignments_of, own_sources, state_line
from gradinspect.recording.values.magnitudes import PendingFigures
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.engine import is_inside_backward
from gradinspect.torch_api.hooks import registrations
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.patching.noticing import noticing
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.tensors import is_leaf, plain_tensors_only

# What a finding may name for its arguments: NOTE [The line that made it] in `lines.made_objects`.
_NOTED = (nn.Module, DataLoader, lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)
LEAST_DROPPED = 5
MAX_USES = 12  # backward calls in which it is looked for what reads each parameter; later where one is new
LEAST_KEPT = 3  # steps that have left a gradient itself in the state of their optimizer
MAX_LOOKS = 8  # at models of which backward reaches new parameters: a program may make some for each step
LEAST_STEPS = 2  # what the first one leaves shows in the second


class TrainingLog:
    """Logs a training loop. Use it as a context manager, around the program."""

    def __init__(self, recorder: Recorder, flow: Dataflow, folder: Path) -> None:
        """Share the recorder's frames and the flow of values; files below the folder are named relative to it."""
        self.is_resting = False  # calls and steps repeat others
        self.on_mode: Callable[[], None] = lambda: None  # called when the mode of a module is set
        self.on_change: Callable[[], None] = lambda: None  # called when a model is built or frozen
        self.replaced: set[int] = set()  # ids of parameters that an optimizer holds, and whose model has others instead
        self._recorder = recorder
        self._flow = flow
        self._folder = folder
        self._gradients = GradientUse(recorder, folder)
        self._optimizers = Optimizers(recorder)
        self._schedules = ScheduleLog(flow.origins, recorder.frames, folder)
        self._registrations = Registrations(recorder)
        self._anew = MadeAnew(self._registrations)
        self._scaled = ScaledLosses(recorder.others.identity_of)
        self.modes = Modes(recorder, folder)
        self._emptied = EmptiedIterators(recorder, folder)
        self._parameters = ParameterLog(recorder, folder, self._gradients, self._registrations, flow.frozen)
        self._sharing = SharingWeights(recorder, self._gradients, self._shared_at, folder)
        self._lagging = LaggingBuffersLog(recorder, self._gradients, lambda one: self._frame(self._flow.made_at(one)))
        self._refilled = RefilledLog(flow, recorder.errors)
        self._num_calls_before_step = 0  # of torch functions, when an optimizer last stepped
        self._attached = ExitStack()
        self._unloaded: list[NothingLoaded] = []
        self._loaded: set[int] = set()  # ids of modules
        self._repeated: dict[str, SharedLayer] = {}
        self._own_backwards: dict[CodeType, str] = {}  # of modules -> their class
        self._frozen_then: dict[int, list[Frozen]] = {}  # by the id of the record of an optimizer
        self._next_look = 0  # the step after which to look for parameters that came, or were unfrozen, between steps
        self._num_looks_left = MAX_LOOKS
        self._unheld_then: list[tuple[int, Unheld]] = []  # with ids, when optimizers stepped: models may be gone later
        self._compiled: set[int | None] = set()  # frames that called code under torch.compile
        self._facts: list[object] = []

    def __enter__(self) -> "TrainingLog":
        """Start listening."""
        turn, guard = self._recorder.turn, self._recorder.errors.guard
        patches = (
            noticing(Optimizer, "__init__", guard(self._on_optimizer), turn),
            *(noticing(kind, "__init__", guard(self._on_made), turn) for kind in _NOTED),
            noticing(lr_scheduler.LRScheduler, "step", guard(self._on_schedule), turn),
            noticing(lr_scheduler.ReduceLROnPlateau, "step", guard(self._on_schedule), turn),
            noticing(nn.Module, "train", guard(self._on_mode), turn),
            noticing(GradScaler, "scale", guard(self._on_scale), turn),
            noticing(nn.Module, "load_state_dict", guard(self._on_load), turn),
            noticing(nn.Module, "state_dict", guard(self._on_state), turn),
        )
        for listening in (
            patched(*patches),
            heard_steps(self._recorder, self._before_step, self._after_step),
            registrations(self._on_module, self._on_parameter, note=self._recorder.errors.note, turn=turn),
        ):
            self._attached.enter_context(listening)
        self._recorder.on_compiled.append(guard(self._on_compiled))
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop listening, and judge what was seen: afterwards the objects may be gone."""
        self._attached.close()
        with plain_tensors_only():
            self._recorder.errors.guard(self._conclude)()  # objects may be unlike those of torch

    def _conclude(self) -> None:
        self._gradients.conclude(self._optimizers.living())
        self._facts = list(self._conclusions())

    def knows_writes(self, last: Callable[[torch.Tensor], int | None]) -> None:
        """Take what returns the frame of the last write to a tensor that no optimizer made."""
        self._parameters.set_at = lambda one: self._flow.made_at(one) if (frame := last(one)) is None else frame

    def facts(self) -> Sequence[object]:
        """List what is to be judged, after the end."""
        return self._facts

    def compiled_lines(self) -> list[Frame | None]:
        """List the lines that called code under torch.compile, where nothing but backward is seen."""
        return [self._frame(number) for number in self._compiled]

    def waits(self) -> str | None:
        """Say what the next steps may show."""
        if self._gradients.other_losses.waits():
            return "an optimizer had applied the gradients of another loss once"
        return self._optimizers.waits() or self._parameters.waits()

    def may_have_stepped(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer may have stepped in code under torch.compile, where no step is seen."""
        return self._optimizers.of(optimizer).was_compiled

    def begin(self, walked: WalkedGraph, call: EngineCall) -> None:
        """Look at a backward call that is about to start."""
        if call.kind == "grad":
            self._gradients.wanted(call.inputs)
            return
        leaves = [(leaf, _name_of(walked, number)) for number, leaf in walked.walk.leaves().items()]
        if call.inputs:
            keys = set(map(id, call.inputs))
            leaves = [(leaf, name) for leaf, name in leaves if id(leaf) in keys]
        known = sum(1 for one in self._gradients.of(leaf for leaf, _ in leaves) if one.num_reached)
        may_tell = self._gradients.num_backwards < MAX_USES or known < len(leaves)
        if known < len(leaves) and self._gradients.num_steps and self._num_looks_left:
            self._num_looks_left -= 1
            self._look_later()
        uses = _uses(walked) if may_tell else None
        self._anew.begin(leaves, self._gradients, self._optimizers.seen)
        self._gradients.begin(leaves, call.frame, self._scaled.scaler_in(walked.walk.sequence_nrs), uses)
        if self._gradients.num_backwards <= LEAST_STEPS:
            self._note_modules()
        self._lagging.begin()
        self._parameters.begin(walked, leaves, self._recorder.called_modules(), self._gradients.backward)
        self.modes.begin([leaf for leaf, _ in leaves], self._recorder.frames.number_of(call.frame))

    def created(self, optimizer: Optimizer) -> int | None:
        """Return the frame that made an optimizer."""
        return self._optimizers.of(optimizer).created

    def origin(self, made: Any) -> int | None:
        """Return the frame that made an optimizer, a module, or a parameter of one."""
        if isinstance(made, Optimizer):
            return self.created(made)
        number, first = self._flow.origins.of(made), self._registrations.first_of(made)
        return first.frame if number is None and first is not None else number

    def method_of(self, leaf: torch.Tensor | None) -> str:
        """Name the class of torch's whose optimizer alone holds a leaf; nothing if it is another one, or several."""
        methods = [type(one.optimizer()) for one in self._optimizers.seen if id(leaf) in one.holds()]
        is_known = len(methods) == 1 and module_of(methods[0]).startswith("torch.optim.")
        return methods[0].__name__ if is_known else ""

    def has_stepped(self) -> bool:
        """Return whether an optimizer has stepped."""
        return bool(self._gradients.num_steps)

    def names_of(self, leaves: Iterable[torch.Tensor]) -> tuple[str, ...]:
        """Return the names of those that a backward call has reached."""
        return tuple(one.name for one in self._gradients.of(leaves) if one.name)

    def last_step(self, key: int) -> LastStep | None:
        """Return the step that was the last to change a tensor, by its id."""
        held = [one for one in self._optimizers.seen if one.num_steps and key in one.holds()]
        if len(held) != 1:
            return None
        (one,) = held
        optimizer = one.optimizer()
        lost, rate = lost_eps(optimizer, key), None if optimizer is None else largest_rate(optimizer)
        return LastStep(one.name, self._frame(one.step), self._frame(one.created), lost, rate)

    def _note_modules(self) -> None:
        for repeated in repeated_layers(self._recorder.called_modules()):
            self._note_repeated(repeated, repeated.path)
        for name, container in self._registrations.containers():  # also of a model that is not called itself
            if not any(f".{known}".endswith(f".{name}") for known in self._repeated):
                for repeated in repeated_layers([container]):
                    if not repeated.path and self._gradients.of(all_parameters(repeated.module)):
                        self._note_repeated(repeated, name)
        self._own_backwards.update(own_backwards(self._recorder.called_modules()))

    def _note_repeated(self, repeated: Repeated, path: str) -> None:
        made = self._registrations.of(repeated.module)
        layer = SharedLayer(
            container=path, layer=type(repeated.module).__name__, count=repeated.num_places,
            made=None if made is None else self._frame(made.frame), backward=self._frame(self._gradients.backward),
        )  # fmt: skip
        self._repeated.setdefault(path, layer)

    def _uncalled_backwards(self) -> Iterator[UncalledBackward]:
        if self._own_backwards and not calls_backward_itself():
            for code, name in self._own_backwards.items():
                number = self._recorder.frames.number_at(code, code.co_firstlineno)
                yield UncalledBackward(module=name, defined=self._frame(number))

    def end(self) -> None:
        """Look at the gradients that a backward call has left."""
        self._gradients.end()
        self._parameters.effects.end()

    @property
    def pending(self) -> list[PendingFigures]:
        """What hooks have done to gradients, and what parameters are, still on their devices."""
        return self._parameters.pending

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Take what was fetched of that."""
        self._parameters.settle(rows)

    def wake(self) -> None:
        """Go on after calls and steps that were only counted."""
        self.is_resting = False
        self._gradients.wake()
        self._parameters.unmoved.unobserved()

    def unobserved(self, kind: CallKind) -> None:
        """Note a call that is not looked at."""
        if kind == "backward":
            self._gradients.unobserved()
            self._parameters.unmoved.unobserved()

    def touched(
        self, touch: GradientTouch, args: tuple[Any, ...], tensors: Sequence[Any], frame: FrameType | None
    ) -> None:
        """Note a call of a torch function that reads or changes a gradient."""
        if touch in {GradientTouch.DROPS, GradientTouch.CLIPS_NOTHING}:
            (self.modes.dropped if touch is GradientTouch.DROPS else self._emptied.made)(frame)
        elif touch is GradientTouch.READS:
            self._gradients.read(args[0], frame)
        elif touch is GradientTouch.SETS:
            self._gradients.assigned(args[0], args[1], frame)
        elif touch is GradientTouch.ZEROES:
            self._gradients.zeroed(tensors, frame)
        elif touch is GradientTouch.UNSCALES:
            self._gradients.unscale(tensors, args[-1], frame)
        elif touch is GradientTouch.HOOKS:
            self._parameters.hooked(args[0], frame)
        else:
            self._touched_leaf(touch, tensors, frame)

    def _touched_leaf(self, touch: GradientTouch, tensors: Sequence[Any], frame: FrameType | None) -> None:
        """Note a call that changes a leaf itself, or may do so."""
        leaf = tensors[0]
        if touch is GradientTouch.AVERAGES:
            self._sharing.averaged(tensors, frame)
            return
        if touch is GradientTouch.FREEZES:
            self.on_change()
            if self._gradients.num_steps and leaf.requires_grad and is_leaf(leaf):
                self._registrations.unfreeze(leaf, frame)
                self._gradients.unfreeze(leaf)
                self._look_later()
            return
        self._gradients.exposed(leaf)
        if touch is GradientTouch.SETS_DATA:
            self._parameters.data_set(leaf, frame)
            self._sharing.data_set(leaf, frame)

    def _look_later(self) -> None:
        """Look at the models once more while they are there, when optimizers will have stepped some times."""
        self._next_look = self._gradients.num_steps + LEAST_STEPS + 1

    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not self._is_seen():
            return
        frame = sys._getframe(1)
        with plain_tensors_only():
            if self.is_resting:
                self._gradients.repeated_step_begins()
                self._optimizers.before_step(optimizer, frame)
                return
            self._gradients.before_step(optimizer, frame)
            self._optimizers.before_step(optimizer, frame)
            self._parameters.before_step(optimizer, self._optimizers.of(optimizer))
            self._refilled.before_step(optimizer, self._optimizers.of(optimizer))
            self.modes.step(optimizer, frame)

    def _after_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not self._is_seen():
            return
        with plain_tensors_only():
            if self.is_resting:
                self._repeated_step(optimizer)
                return
            self._optimizers.after_step(optimizer, is_idle=self._gradients.is_idle(optimizer))
            self._gradients.after_step(optimizer)
            self._parameters.after_step(optimizer, self._optimizers.of(optimizer))
            self._sharing.stepped()
            self._num_calls_before_step = len(self._flow.calls)
            seen = self._optimizers.of(optimizer)
            if seen.num_idle == LEAST_STEPS:
                self._note_unheld(self._rebound())
            if seen.num_steps == LEAST_STEPS or self._gradients.num_steps == self._next_look:
                self._note_unheld(self._unheld_now())
            if seen.num_steps.bit_count() == 1:  # it may be gone at the end, and what is frozen may be unfrozen
                self._frozen_then[id(seen)] = [one for one in self._frozen_now([seen]) if one.optimizer is seen]

    def _repeated_step(self, optimizer: Optimizer) -> None:
        """Note a step that repeats others."""
        was_idle = bool(self._optimizers.of(optimizer).num_idle)
        self._optimizers.after_step(optimizer, is_idle=was_idle and self._gradients.is_idle(optimizer))
        self._gradients.repeated_step_ends()
        self._sharing.stepped()

    def _on_compiled(self, is_entered: bool, caller: FrameType | None) -> None:  # as the recorder calls it
        with plain_tensors_only():
            self._optimizers.compiled(is_entered=is_entered)
            if is_entered:
                self._compiled.add(self._recorder.frames.number_of(caller))

    def _on_optimizer(self, optimizer: Any, _args: object, _kwargs: object, _result: object, frame: FrameType) -> None:
        self._recorder.attributes.look()  # its class may count who reads it, and may step before any module is called
        with plain_tensors_only():
            self._optimizers.create(optimizer, self._registrations.order, frame)

    def _on_made(self, made: Any, _args: object, _kwargs: object, _result: object, frame: FrameType) -> None:
        self._flow.origins.note(made, frame)

    def _on_schedule(self, scheduler: Any, args: Any, kwargs: Any, _result: object, frame: FrameType) -> None:
        one = self._optimizers.schedule(scheduler, frame, had_backward=bool(self._gradients.num_backwards))
        if one is not None:
            one.scheduler = self._flow.origins.of(scheduler)
            self._schedules.note(scheduler, one, args, kwargs, frame)

    def _on_mode(self, module: Any, _args: object, _kwargs: object, _result: object, frame: FrameType) -> None:
        self.modes.switch(module, frame)
        self.on_mode()

    def _on_scale(self, scaler: Any, _args: object, _kwargs: object, result: Any, _frame: FrameType) -> None:
        with plain_tensors_only():
            self._scaled.note(scaler, result)

    def _on_load(self, module: Any, args: Any, kwargs: Any, result: Any, frame: FrameType) -> None:
        state = argument(args, kwargs, 0, "state_dict")
        found = unloaded(module, state, result, self._frame(self._number(frame)))
        with plain_tensors_only():
            self._sharing.loaded(module, state, frame)
        if found is None:
            self._loaded.add(id(module))
        else:
            self._unloaded.append(found)

    def _on_state(self, _module: Any, _args: object, _kwargs: object, state: Any, frame: FrameType) -> None:
        self._sharing.kept(state, frame)

    def _on_module(self, holder: Any, name: str, module: Any) -> None:
        self.on_change()
        self._registrations.module(holder, name, module, sys._getframe(1))

    def _on_parameter(self, holder: Any, name: str, parameter: Any) -> None:
        self.on_change()
        self._registrations.parameter(holder, name, parameter, sys._getframe(1))

    def _is_seen(self) -> bool:
        """Return whether a step is one of the program's loop, rather than one inside backward or compiled code."""
        return not is_inside_backward() and self._recorder.is_active

    def _conclusions(self) -> Iterator[object]:
        if not self._optimizers.were_compiled:
            yield from self._gradients.found.values()
        yield from self._unheld()
        for one in self._optimizers.seen:
            yield from self._optimizer_misuses(one)
        for one in self._optimizers.without_learning_rate():
            yield self._optimizer_misuse("zero", one, one.schedule)
        for one in self._optimizers.seen:
            if one.num_late or one.num_at_zero:
                fact = self._optimizer_misuse("late" if one.num_late else "zero", one, one.schedule)
                yield replace(fact, num_steps=one.num_late or one.num_at_zero)
        for one in self._optimizers.outlived():
            new, fact = one.successor, self._optimizer_misuse("outlived", one, one.schedule)
            if new is not None:
                yield replace(fact, other=new.name, other_created=self._frame(new.created))
        yield from self._schedules.facts(self._frame)
        yield from self._emptied.facts() if self._gradients.num_steps else ()
        yield from self.modes.found.values()
        yield from self.modes.dropouts.values()
        yield from self.modes.undone.found.values()
        yield from self._repeated.values()
        yield from self._uncalled_backwards()
        yield from self._kept_gradients()
        yield from self._parameters.facts({key for one in self._optimizers.seen for key in one.holds()})
        yield from self._frozen()
        yield from self._unmoved()
        yield from self._unloaded
        yield from self._sharing.facts()
        yield from self._lagging.found.values()
        yield from self._refilled.facts(self.names_of, self._frame)

    def _unheld(self) -> Iterator[UnheldParameters]:
        held = {key for one in self._optimizers.seen for key in one.holds()}
        then = (
            one
            for key, one in self._unheld_then
            if one.parameter.is_forgotten or key not in held or self._has_lost_its_id(one)
        )
        anew = (*self._anew.found(), *self._rebound())
        found = {one.key: one for one in (*anew, *then, *self._unheld_now())}.values()

        def cause(one: Unheld) -> tuple[str, str, int, int]:
            where = "" if one.kind in ("remade", "group", "unfrozen", "rebound") else one.where
            is_one = one.frame is None or one.kind == "container"  # whose parts may be made on several lines
            created = -1 if one.optimizer.created is None else one.optimizer.created
            return one.kind, where, -1 if is_one or one.frame is None else one.frame, created

        for _, group in groupby(sorted(found, key=cause), key=cause):
            some = list(group)
            first = some[0]
            if first.kind in ("replaced", "remade", "instead"):
                self.replaced |= first.optimizer.holds() - {id(tensor) for tensor in self._owned()}
            yield UnheldParameters(
                kind=first.kind, where=first.where,
                names=tuple(dict.fromkeys(one.parameter.name or one.where for one in some)),
                optimizer=first.optimizer.name, created=self._frame(first.optimizer.created),
                made=self._made_together(some), backward=self._frame(first.parameter.backward),
            )  # fmt: skip

    def _has_lost_its_id(self, one: Unheld) -> bool:
        """Return whether a parameter that no step has changed is gone, and its id is that of another one by now."""
        gone = one.parameter
        is_known = any(other is gone for other in self._gradients.parameters())
        return gone.tensor() is None and gone.step is None and not is_known

    def _made_together(self, some: Sequence[Unheld]) -> Frame | None:
        """Return the line that made parameters; that of what holds them, if several lines did."""
        first = some[0]
        attribute = f"self.{first.where.rpartition('.')[2]}"
        if first.kind == "container" and len({self._made(one) for one in some}) > 1:
            lines = [(file, one.lineno) for file in own_sources(attribute) for one in assignments_of(file, attribute)]
            if len(lines) == 1:
                return source_line(*lines[0], self._folder)
        return self._frame(self._made(first))

    def _frozen(self) -> Iterator[FrozenByAccident]:
        seen = self._optimizers.seen
        then = [one for key in seen if key.optimizer() is None for one in self._frozen_then.get(id(key), ())]
        for one in (*self._frozen_now(seen), *then):
            frozen = self._frame(one.frozen)
            caller = None if one.frozen is None else self._frame(self._recorder.frames.caller_of(one.frozen))
            optimizer = one.optimizer
            yield FrozenByAccident(
                kind=one.kind, names=one.names, asked=one.asked, frozen=frozen, copied=self._frame(one.copied),
                made=self._frame(one.made),
                called=caller_of_helper(frozen, caller, None), optimizer="" if optimizer is None else optimizer.name,
                created=None if optimizer is None else self._frame(optimizer.created),
                step=None if optimizer is None else self._frame(optimizer.step),
                num_steps=0 if optimizer is None else optimizer.num_idle,
            )  # fmt: skip

    def _frozen_now(self, optimizers: Sequence[SeenOptimizer]) -> Iterator[Frozen]:
        return frozen_by_accident(optimizers, self._recorder, self._registrations, self._flow)

    def _unmoved(self) -> Iterator[UnmovedParameters | ForgottenAssignment]:
        assigned: dict[int, list[tuple[torch.Tensor, int]]] = {}
        for update in dropped_updates(self._flow.calls):
            tensor = self._flow.leaf(update.leaf)
            if tensor is not None and self._parameters.unmoved.is_same(tensor):
                assigned.setdefault(update.frame, []).append((tensor, update.num_times))
        for frame, updates in assigned.items():
            known = self._gradients.of(tensor for tensor, _ in updates)
            yield UnmovedParameters(
                kind="assigned", names=tuple(dict.fromkeys(one.name or "a parameter" for one in known)),
                num_steps=min(count for _, count in updates), backward=self._frame(known[0].backward),
                written=self._frame(frame),
            )  # fmt: skip
        yield from self._forgotten(assigned)
        said = {id(tensor) for updates in assigned.values() for tensor, _ in updates}
        by_cause: dict[tuple[str, int], list[Unmoved]] = {}
        for one in self._parameters.unmoved.found():
            if one.key not in said:
                by_cause.setdefault((one.kind, id(one.optimizer)), []).append(one)
        for some in by_cause.values():
            yield unmoved_fact(some, self._frame, self._written)
        yield from self._lost({key for kind, key in by_cause if kind == "lost"})

    def _lost(self, known: Collection[int]) -> Iterator[UnmovedParameters]:
        """Yield the optimizers whose steps change few elements, unless that is known of whole parameters."""
        for one in self._parameters.lost.found():
            named = self._gradients.of(living(one))
            if id(one.seen) not in known and named:
                yield lost_fact(one, [parameter.name for parameter in named], named[0].backward, self._frame)

    def _forgotten(self, known: Collection[int]) -> Iterator[ForgottenAssignment]:
        for one in forgotten(self._flow.calls, self._recorder.frames):
            if one.frame not in known:
                yield ForgottenAssignment(name=one.name, value=one.value, assigned=self._frame(one.frame))

    def _written(self, tensor: torch.Tensor | None) -> int | None:
        """Return the frame of the last call that wrote to a tensor."""
        call = OUTSIDE if tensor is None else self._flow.read(tensor).call
        return None if call == OUTSIDE or not self._flow.calls[call].is_write else self._flow.calls[call].frame

    def _unheld_now(self) -> Iterator[Unheld]:
        return unheld(
            self._gradients.parameters(), self._recorder.called_modules(), self._optimizers.seen, self._registrations,
            self._loaded, self._recorder.errors.leave_out,
        )  # fmt: skip

    def _note_unheld(self, found: Iterable[Unheld]) -> None:
        self._unheld_then += ((id(one.parameter.tensor()), one) for one in found)

    def _rebound(self) -> Iterator[Unheld]:
        return rebound(self._gradients, self._optimizers.seen, self._registrations, self._flow.made_at)

    def _owned(self) -> Iterator[torch.Tensor]:
        """Yield the parameters of all models that were called."""
        for root in self._recorder.called_modules():
            yield from all_parameters(root)

    def _shared_at(self, tensor: torch.Tensor) -> int | None:
        """Return the frame where a tensor came to its memory, if that was before the last step."""
        assigned = self._parameters.assigned_at(tensor)
        calls, call = self._flow.calls, self._flow.read(tensor).call
        while call != OUTSIDE and calls[call].is_write and calls[call].reads:
            call = calls[call].reads[0].call
        is_kept = OUTSIDE < call < self._num_calls_before_step
        return assigned if assigned is not None or not is_kept else calls[call].frame

    def _made(self, one: Unheld) -> int | None:
        """Return the frame that made a parameter; that of a plain tensor is in the flow of values."""
        tensor = one.parameter.tensor() if one.value is None else one.value()
        if one.frame is not None or tensor is None or one.kind in ("model", "instead", "twin", "group"):
            return one.frame
        return self._flow.made_at(tensor)

    def _kept_gradients(self) -> Iterator[KeptGradient]:
        for one in self._optimizers.seen:
            optimizer = one.optimizer()
            if one.kept is not None and one.num_kept >= LEAST_KEPT and optimizer is not None:
                code = unwrap(type(optimizer).step).__code__
                line = state_line(code.co_filename, one.kept)
                yield KeptGradient(
                    optimizer=one.name, key=one.kept, num_steps=one.num_kept, step=self._frame(one.step),
                    kept=None if line is None else self._frame(self._recorder.frames.number_at(code, line)),
                )  # fmt: skip

    def _optimizer_misuses(self, one: SeenOptimizer) -> Iterator[OptimizerMisuse]:
        if one.is_replaced:
            yield self._optimizer_misuse("anew", one)
        if one.num_steps and len(one.scheduled) == 1 and not one.had_backward and not one.was_compiled:
            yield self._optimizer_misuse("scheduled", one, one.scheduled[0])
        if one.factors.are_rates:
            fact = self._optimizer_misuse("squared", one, one.factors.scheduled)
            code = one.factors.code
            number = None if code is None else self._recorder.frames.number_at(code, code.co_firstlineno)
            yield replace(fact, squared=max(one.factors.base), function=self._frame(number))
        elif one.falls.count >= LEAST_STEPS:
            yield self._optimizer_misuse("falls", one, one.falls.scheduled)
        elif not one.was_zero and (sunk := one.sunken.lasts(one.num_steps)) is not None:
            fact = self._optimizer_misuse("sunken", one, sunk.scheduled)
            ratio = one.sunken.rate / one.sunken.largest
            yield replace(fact, ratio=ratio, num_steps=one.num_steps, sunken_after=sunk.after, sunken_to=sunk.share)
        has_begun = one.step is not None  # a step with a closure may not end before the watch does
        if has_begun or one.was_compiled or self._gradients.num_backwards < LEAST_STEPS:
            return
        least = LEAST_DROPPED if self._gradients.num_steps else 1  # another optimizer may come first
        optimizer = one.optimizer()
        held = self._gradients.with_ids(one.holds())
        dropped = [parameter for parameter in held if parameter.num_dropped >= least]
        if dropped and len(dropped) == len(held):
            name = one.name if optimizer is None else name_of_optimizer(optimizer)
            first, created = dropped[0], self._frame(one.created)
            backward, cleared = self._frame(first.first_backward), self._frame(first.clearing)
            yield OptimizerMisuse(
                kind="never", optimizer=assigned_name(created) or name, created=created, backward=backward,
                cleared=cleared, scheduled=self._frame(one.scheduled[-1] if one.scheduled else None),
            )  # fmt: skip

    def _optimizer_misuse(
        self, kind: OptimizerMisuseKind, one: SeenOptimizer, scheduled: int | None = None
    ) -> OptimizerMisuse:
        return OptimizerMisuse(
            kind=kind, optimizer=one.name, created=self._frame(one.created), step=self._frame(one.step),
            scheduled=self._frame(scheduled), ratio=one.falls.ratio,
            scheduler=None if scheduled is None else self._frame(one.scheduler),
        )  # fmt: skip

    def _number(self, frame: FrameType | None) -> int | None:
        return self._recorder.frames.number_of(frame)

    def _frame(self, number: int | None) -> Frame | None:
        return self._recorder.frames.record(number, self._folder)


def assigned_name(frame: Frame | None) -> str | None:
    """Return the variable that a line assigns to, if it is one: `self.opt` of `self.opt = Adam(...)`."""
    found = None if frame is None or ";" in frame.code else re.match(r"([A-Za-z_][\w.]*)\s*=[^=]", frame.code)
    return None if found is None else found[1]


def _uses(walked: WalkedGraph) -> dict[int, int]:
    """Return for each leaf, by its id, the earliest node that reads it."""
    leaves = walked.walk.leaves()
    return {id(leaves[number]): first for number, first in first_uses(walked.graph).items() if number in leaves}


def _name_of(walked: WalkedGraph, number: int) -> str:
    leaf = walked.graph.nodes[number].leaf
    return (leaf.name if leaf is not None else None) or ""
