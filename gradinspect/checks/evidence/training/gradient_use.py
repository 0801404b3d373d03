"""What happens to the gradient of each parameter between backward and the optimizer's step.

NOTE [Used gradients]
A step uses the gradient of each of its parameters. If the same tensor with the same version is there when
the next backward adds to it, then it was not cleared, and the step after that applies it once more. But in a GAN the
discriminator's gradient is cleared only after the generator's backward has added to it, so nothing is said before that
optimizer steps again; or at the end of what was observed, if there is no other optimizer, and the last step came after
a backward on the same line.

NOTE [Gradients of other threads]
torch counts the references to a tensor's Python object without a lock, while an operator or the engine runs on another
thread: a `.grad` that is read then may be freed twice. So only those are read that the thread itself trains, or that
its optimizer is about to read.
Source: c10/core/TensorImpl.cpp `incref_pyobject`, torch 2.13.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import get_ident
from types import FrameType
from weakref import ReferenceType

import torch
from torch.amp import GradScaler
from torch.nn.utils import clip_grad
from torch.optim import Optimizer

from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.checks.evidence.training.closures import ClosureUse
from gradinspect.checks.evidence.training.discards import Discards
from gradinspect.checks.evidence.training.other_losses import GradientPart, OtherLosses
from gradinspect.checks.evidence.training.scaled_steps import SCALER_FILE, has_scale
from gradinspect.checks.facts.training import GradientMisuse, GradientMisuseKind
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_user_file, source_line
from gradinspect.recording.names.variables import local_variables
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import lines_that_only_name, own_sources
from gradinspect.recording.values.magnitudes import why_unread
from gradinspect.torch_api.modes import Unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_leaf, known_version
from gradinspect.torch_api.weak import HiddenRef

LEAST_STEPS = 2  # of others, since a parameter was unfrozen
MAX_LOOKED_AT = 4  # gradients whose values are read
CLIP_FILE = clip_grad.__file__


@dataclass
class UsedParameter:
    """A parameter that a backward call reached. Times are those of the log; 0 is never."""

    tensor: ReferenceType[torch.Tensor]
    name: str
    version: int | None = None  # when backward first reached it
    reached: int = 0
    thread: int | None = None  # whose backward call was the last to reach it
    num_reached: int = 0
    is_input: bool = False  # autograd.grad was called for it
    backward: int | None = None  # the frame of the last backward that reached it
    first_backward: int | None = None  # that of the first one since it was cleared
    first_use: int | None = None  # the sequence number of the earliest node that reads it, in a backward call
    stepped: int = 0
    step: int | None = None
    stepped_after: int | None = None  # the frame of the last backward before that step
    used: tuple[int, int | None] | None = None  # the gradient that a step has used: its id and version
    is_added_to: bool = False  # backward has added to a used gradient
    cleared: int = 0
    clearing: int | None = None
    num_dropped: int = 0  # gradients that were cleared, and nobody had used
    steps_before: int = 0  # the last backward that reached it
    unfrozen: int = 0
    steps_then: int = 0  # of all optimizers
    read: int = 0
    readers: set[tuple[int, int]] = field(default_factory=set)  # the instructions of the program that did so
    is_exposed: bool = False  # its `.data` was read or set
    clipped: int = 0
    clip: int | None = None
    is_early: bool = False  # it was clipped when no backward had come since the last step
    is_clipped_well: bool = False  # the last step had a gradient that was clipped
    unscaled: int = 0
    scaler: ReferenceType[GradScaler] | None = None  # that has multiplied the loss of the last backward

    @property
    def is_here(self) -> bool:
        """Whether this thread trains it. NOTE [Gradients of other threads]."""
        return self.thread is None or self.thread == get_ident()

    @property
    def is_forgotten(self) -> bool:
        """Whether it was unfrozen, and optimizers have stepped, but no step has changed it since."""
        return self.unfrozen > self.stepped and self.steps_before >= self.steps_then + LEAST_STEPS

    @property
    def is_fresh(self) -> bool:
        """Whether backward has reached it since the last step."""
        return self.reached > self.stepped


@dataclass
class GradientUse:
    """Follows gradients. The log calls it with what it sees."""

    recorder: Recorder
    folder: Path = field(default_factory=Path)  # files below it are named relative to it
    time: int = 0
    blind_until: int = 0  # a backward that is not observed may have reached anything
    woken: int = 0  # until then, the calls repeated others and were only counted
    last_step: int = 0
    num_steps: int = 0
    num_steps_done: int = 0
    num_backwards: int = 0
    backward: int | None = None  # the frame of the last one
    closures: ClosureUse = field(default_factory=ClosureUse)
    other_losses: OtherLosses = field(default_factory=OtherLosses)
    discards: Discards = field(default_factory=Discards)
    found: dict[tuple[str, int], GradientMisuse] = field(default_factory=dict)  # by kind and the optimizer's id
    _parameters: dict[int, UsedParameter] = field(default_factory=dict)  # by id
    _last_line: tuple[object, int, int | None] = (None, -1, None)  # key of a frame, time, the frame's number
    _by_gradient: dict[int, int] = field(default_factory=dict)  # id of a gradient -> id of its parameter

    def parameters(self) -> list[UsedParameter]:
        """List the parameters that were reached."""
        return list(self._parameters.values())

    def with_ids(self, keys: Collection[int]) -> list[UsedParameter]:
        """Return those with some ids, even if they are gone."""
        return [one for key, one in self._parameters.items() if key in keys]

    def of(self, tensors: Iterable[torch.Tensor]) -> list[UsedParameter]:
        """Return those among some tensors that were reached."""
        known = ((tensor, self._parameters.get(id(tensor))) for tensor in tensors)
        return [one for tensor, one in known if one is not None and one.tensor() is tensor]

    def is_read_here(self, tensor: torch.Tensor) -> bool:
        """Return whether this thread may read a `.grad`. NOTE [Gradients of other threads]."""
        one = self._known(tensor)
        return one is None or one.is_here

    def begin(
        self,
        leaves: Sequence[tuple[torch.Tensor, str]],
        frame: FrameType | None,
        scaler: ReferenceType[GradScaler] | None = None,
        uses: Mapping[int, int] | None = None,
    ) -> None:
        """Note what a backward call is about to add to.

        Args:
            leaves: The parameters, with their names.
            frame: The line of the call.
            scaler: Which has multiplied its loss.
            uses: The earliest node that reads each of them, by its id; not those of all calls are known.
        """
        self.time += 1
        self.num_backwards += 1
        backward = self.backward = self.recorder.frames.number_of(frame)
        reached = {id(tensor) for tensor, _ in leaves}
        mine = [(key, one) for key, one in self._parameters.items() if key in reached or one.is_here]
        added = [one for key, one in mine if self._is_used(one) and key in reached]
        for one in added if _any_nonzero(added) else ():
            one.is_added_to = True
        self._look_at_closure(reached, backward)
        self.discards.reached(backward, reached)
        for tensor, name in leaves:
            leaf = self._known_or_new(tensor)
            if leaf.cleared >= leaf.reached:
                leaf.first_backward = backward
            leaf.name, leaf.reached, leaf.backward = name, self.time, backward
            leaf.version = leaf.version if leaf.num_reached else known_version(tensor)
            leaf.num_reached, leaf.thread = leaf.num_reached + 1, get_ident()
            leaf.steps_before, leaf.scaler = self.num_steps, scaler
            first_use = None if uses is None else uses.get(id(tensor))
            leaf.first_use = leaf.first_use if first_use is None else first_use
            self.other_losses.reached(id(tensor), GradientPart(self.time, backward, first_use))

    def end(self) -> None:
        """Note the gradients that backward has left."""
        known = self._parameters
        self._by_gradient = {gradient: key for gradient, key in self._by_gradient.items() if not known[key].is_here}
        for key, one in known.items():
            tensor = one.tensor() if one.is_here else None
            gradient = None if tensor is None else gradient_of(tensor)
            if gradient is not None:
                self._by_gradient[id(gradient)] = key
                if one.is_added_to:
                    one.used = id(gradient), known_version(gradient)  # what was used is still part of it

    def wanted(self, inputs: Iterable[object]) -> None:
        """Note the tensors that autograd.grad is called for."""
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                self._known_or_new(tensor).is_input = True

    def unobserved(self) -> None:
        """Note a backward call that is not observed."""
        self.time += 1
        self.blind_until = self.time
        self.other_losses.unobserved()
        for one in self._parameters.values():
            one.used, one.is_added_to = None, False

    def repeated_step_begins(self) -> None:
        """Note that a step begins which repeats others; it may be looked at again before it ends, in its closure."""
        self.num_steps += 1

    def repeated_step_ends(self) -> None:
        """Note that it has ended."""
        self.num_steps_done = self.num_steps

    def wake(self) -> None:
        """Go on after calls and steps that were only counted."""
        self.time += 2
        self.woken = self.time
        self.other_losses.unobserved()
        self.discards.unobserved()
        for one in self._parameters.values():
            one.used, one.is_added_to, one.is_early = None, False, False
            one.stepped = max(one.stepped, self.time - 1 if one.reached else 0)

    def cleared(self, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Note that a parameter's `.grad` was set to None or to zeros."""
        one = self._known(tensor)
        if one is None:
            return
        number = self._number_in_loop(frame)
        self.time += 1
        if one.is_fresh and max(one.read, one.cleared, one.unscaled) < one.reached:
            one.num_dropped += 1
            if self.num_steps == one.steps_before == self.num_steps_done:
                self.discards.cleared(id(tensor), number)
        one.cleared, one.clearing, one.is_added_to = self.time, number, False
        self.other_losses.cleared(id(tensor))
        self._last_line = (_key(frame), self.time, number)

    def assigned(self, tensor: torch.Tensor, gradient: object, frame: FrameType | None) -> None:
        """Note that `.grad` was assigned: None and zeros clear it; of what else it consists is not known."""
        if isinstance(gradient, torch.Tensor) and _has_nonzero([gradient]):
            self.other_losses.cleared(id(tensor))
        else:
            self.cleared(tensor, frame)

    def zeroed(self, gradients: Iterable[torch.Tensor], frame: FrameType | None) -> None:
        """Note that tensors were set to zero in place, some of which may be gradients."""
        for tensor in self._owners(gradients):
            self.cleared(tensor, frame)

    def read(self, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Note that `.grad` was read, perhaps to clip it."""
        if frame is None:
            return
        one = self._known(tensor)
        if frame.f_code.co_filename == CLIP_FILE and not _only_measures(frame):
            one = self._known_or_new(tensor)
            number = self._number_in_loop(frame)
            self.time += 1
            one.clipped, one.clip = self.time, number
            self._last_line = (_key(frame), self.time, number)
            one.is_early = not one.is_fresh and max(self.blind_until, self.woken) <= one.stepped
        elif one is not None and is_user_file(frame.f_code.co_filename):
            self.time += 1
            one.read = self.time
            one.readers.add((id(frame.f_code), frame.f_lasti))  # one of a helper may read all

    def unfreeze(self, tensor: torch.Tensor) -> None:
        """Note that a parameter begins to require grad."""
        one = self._known_or_new(tensor)
        self.time += 1
        one.unfrozen, one.steps_then = self.time, self.num_steps

    def exposed(self, tensor: torch.Tensor) -> None:
        """Note that the program may write to a parameter without raising its version."""
        one = self._known(tensor)
        if one is not None:
            one.is_exposed = True

    def unscale(self, gradients: Sequence[torch.Tensor], factor: torch.Tensor, frame: FrameType | None) -> None:
        """Note that a GradScaler has divided gradients by its scale."""
        self.time += 1
        late = []
        for one in self.of(self._owners(gradients)):
            if one.clipped > one.reached > one.unscaled:
                late.append(one)
            one.unscaled = self.time
        if late and bool(ops.item(ops.ne(factor, 1))):
            frames = {"backward": late[0].backward, "clipped": late[0].clip, "unscaled": self._number(frame)}
            self._misuse("scaled", 0, "", late, frames)

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        """Compare the gradients with what has happened to them."""
        self.time += 1
        self.num_steps += 1
        held = self.of(held_by(optimizer))
        fresh = [one for one in held if one.is_fresh]
        step = self._number(frame)
        added = [one for one in held if one.is_added_to and _gradient(one) is not None]
        keys = [id(one.tensor()) for one in fresh if _gradient(one) is not None]
        other = self.other_losses.step(id(optimizer), keys)
        if added:
            self._not_cleared(optimizer, added, step, other)
        elif other is not None and self.other_losses.is_habit(id(optimizer)):
            frames = {"other": other.backward, "backward": fresh[0].backward, "step": step}
            self._misuse("other", id(optimizer), name_of_optimizer(optimizer), fresh, frames)
        if (
            fresh
            and all(one.cleared > one.reached or _gradient(one) is None for one in fresh)
            and not _any_nonzero(fresh)
        ):
            cleared = max(fresh, key=lambda one: one.cleared)
            frames = {"backward": fresh[0].backward, "cleared": cleared.clearing, "step": step}
            self._misuse("cleared", id(optimizer), name_of_optimizer(optimizer), fresh, frames)
        lost = self.discards.step()
        if lost is not None:
            frames = {"cleared": lost.clearing, "backward": lost.backward, "step": step}
            names = self.with_ids(lost.reached)
            self._misuse("partial", id(optimizer), name_of_optimizer(optimizer), names, frames)
        scaled = [one for one in fresh if one.scaler is not None and max(one.unscaled, one.read) < one.reached]
        if scaled and not _is_called_by(frame, SCALER_FILE) and has_scale(scaled[0].scaler):
            frames = {"backward": scaled[0].backward, "step": step}
            self._misuse("unscaled", id(optimizer), name_of_optimizer(optimizer), scaled, frames)
        early = [one for one in fresh if one.is_early and one.stepped < one.clipped < one.reached]
        if early:
            frames = {"clipped": early[0].clip, "backward": early[0].backward, "step": step}
            self._misuse("early", id(optimizer), name_of_optimizer(optimizer), early, frames)
        self.closures.begin(optimizer, self.time, step)
        for one in held:
            one.step, one.stepped_after, one.is_clipped_well = step, one.backward, one.clipped > one.reached

    def is_idle(self, optimizer: Optimizer) -> bool:
        """Return whether a step that ends has found no gradient, and no backward has reached what it updates."""
        held = held_by(optimizer)
        is_known = (
            not self.blind_until
            and self.woken <= self.last_step
            and all(gradient_of(tensor) is None for tensor in held)
        )
        return is_known and not any(one.is_fresh for one in self.of(held))

    def after_step(self, optimizer: Optimizer) -> None:
        """Note which gradients have been used."""
        self.time += 1
        self.num_steps_done = self.num_steps
        self.last_step = self.time
        self.closures.end()
        for one in self.of(held_by(optimizer)):
            gradient = _gradient(one)
            one.stepped, one.is_added_to = self.time, False
            self.other_losses.cleared(id(one.tensor()))
            one.used = None if gradient is None else (id(gradient), known_version(gradient))

    def conclude(self, optimizers: Sequence[Optimizer]) -> None:
        """Judge what was seen until now, when no more will be. NOTE [Used gradients]."""
        if len(optimizers) == 1:
            held = self.of(held_by(optimizers[0]))
            added = [one for one in held if one.is_added_to and one.backward == one.stepped_after]
            if added:
                self._not_cleared(optimizers[0], added, added[0].step)
            late = [one for one in held if one.is_early and one.stepped < one.clipped < one.reached]
            is_said = ("early", id(optimizers[0])) in self.found
            if late and not is_said and not any(one.is_clipped_well for one in late):
                frames = {"backward": late[0].backward, "step": late[0].step, "clipped": late[0].clip}
                self._misuse("late", id(optimizers[0]), name_of_optimizer(optimizers[0]), late, frames)

    def _look_at_closure(self, reached: Collection[int], backward: int | None) -> None:
        """Look for gradients that a closure adds to those of its last call."""
        optimizer = self.closures.repeating()
        if optimizer is None:
            return
        held = [one for one in self.of(held_by(optimizer)) if id(one.tensor()) in reached]
        kept = [one for one in held if one.cleared < self.closures.since < one.reached]
        if kept and _any_nonzero(kept):
            frames = {"backward": backward, "step": self.closures.step}
            self._misuse("closure", id(optimizer), self.closures.name, kept, frames)

    def _not_cleared(
        self, optimizer: Optimizer, added: Sequence[UsedParameter], step: int | None, other: GradientPart | None = None
    ) -> None:
        frames = {"backward": added[0].backward, "step": step, "other": None if other is None else other.backward}
        keys = {id(one) for one in added}
        rest = [one for one in self.of(held_by(optimizer)) if id(one) not in keys]
        frames["cleared"] = next((one.clearing for one in rest if one.cleared > one.stepped), None)
        known = self.found.get(("added", id(optimizer)))
        if known is not None and known.cleared is None and frames["cleared"] is not None:
            del self.found["added", id(optimizer)]  # in the first iterations there is nothing to clear
        self._misuse("added", id(optimizer), name_of_optimizer(optimizer), added, frames)

    def _misuse(
        self,
        kind: GradientMisuseKind,
        key: int,
        optimizer: str,
        parameters: Sequence[UsedParameter],
        frames: dict[str, int | None],
    ) -> None:
        if (kind, key) in self.found:
            return
        uncalled = uncalled_line("zero_grad", self.folder) if kind == "added" else None
        lines = {role: self.recorder.frames.record(number, self.folder) for role, number in frames.items()}
        names = tuple(dict.fromkeys(one.name for one in parameters if one.name))
        self.found[kind, key] = GradientMisuse(kind=kind, optimizer=optimizer, names=names, uncalled=uncalled, **lines)

    def _is_used(self, one: UsedParameter) -> bool:
        """Return whether a gradient is still the one that a step has used."""
        gradient = _gradient(one)
        if one.used is None or gradient is None or one.used != (id(gradient), known_version(gradient)):
            one.used, one.is_added_to = None, False
            return False
        return True

    def _known(self, tensor: torch.Tensor) -> UsedParameter | None:
        one = self._parameters.get(id(tensor))
        return one if one is not None and one.tensor() is tensor else None

    def _known_or_new(self, tensor: torch.Tensor) -> UsedParameter:
        one = self._known(tensor)
        if one is None:
            one = self._parameters[id(tensor)] = UsedParameter(HiddenRef(tensor), "")
        return one

    def _owners(self, gradients: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """Return the parameters that some tensors are the gradients of."""
        keys = (self._by_gradient.get(id(gradient)) for gradient in gradients)
        tensors = (self._parameters[key].tensor() for key in keys if key in self._parameters)
        return [tensor for tensor in tensors if tensor is not None]

    def _number_in_loop(self, frame: FrameType | None) -> int | None:
        """Return a frame's number; quickly, if nothing happened since the last gradient that this frame touched."""
        key, time, number = self._last_line
        return number if key == _key(frame) and time == self.time else self._number(frame)

    def _number(self, frame: FrameType | None) -> int | None:
        return self.recorder.frames.number_of(frame)


def uncalled_line(name: str, folder: Path) -> Frame | None:
    """Return the first line of the program that names a method without calling it."""
    for file in own_sources(f".{name}"):
        for line in lines_that_only_name(file, name):
            return source_line(file, line, folder)
    return None


def _key(frame: FrameType | None) -> tuple[int, int] | None:
    """Identify an instruction of a running frame."""
    return None if frame is None else (id(frame), frame.f_lasti)


def _is_called_by(frame: FrameType | None, file: str) -> bool:
    """Return whether code of a file is among the callers of a frame."""
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None


def held_by(optimizer: Optimizer) -> list[torch.Tensor]:
    """List the parameters of an optimizer."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of a leaf; torch warns of reading that of another tensor, and there is none."""
    return tensor.grad if is_leaf(tensor) else None


def _gradient(one: UsedParameter) -> torch.Tensor | None:
    tensor = one.tensor()
    return None if tensor is None else gradient_of(tensor)


def _any_nonzero(parameters: Sequence[UsedParameter]) -> bool:
    """Return whether a gradient among the first few has an element that is not zero; unreadable ones count."""
    return _has_nonzero([gradient for one in parameters[:MAX_LOOKED_AT] if (gradient := _gradient(one)) is not None])


def _has_nonzero(gradients: Iterable[torch.Tensor]) -> bool:
    """Return whether a gradient has an element that is not zero; unreadable ones count."""
    try:
        with Unobserved():
            return any(why_unread(one) is not None or bool(ops.item(ops.count_nonzero(one))) for one in gradients)
    except (RuntimeError, NotImplementedError, TypeError):
        return True


def _only_measures(frame: FrameType | None) -> bool:
    """Return whether a clipping function has an infinite limit, to return the norm."""
    while frame is not None and frame.f_code.co_filename == CLIP_FILE:
        if local_variables(frame).get("max_norm") == float("inf"):
            return True
        frame = frame.f_back
    return False
