"""Find out which optimizers step, and whether they could do so inside backward.

NOTE [Steps inside backward]
A parameter that is updated as soon as its gradient is there ends up the same to the last bit only if the optimizer
looks at one parameter at a time, as those of torch do, if each of its steps follows one backward call, and if the
program takes neither gradients nor parameters between the two: to clip them, to scale them, to log their norms. Nor may
it take gradients after the step, until they are cleared. So each of these is noticed, and the first one is named. A
line of the program that takes gradients and has not run yet may do so in a later step.
"""

import sys
from collections.abc import Iterator, MutableMapping
from types import FrameType
from typing import Any

import torch
from torch import distributed, nn
from torch.optim import LBFGS, Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.analyses.planning.changes import Fused, NamedPlace, StepInBackward, WithoutForeach
from gradinspect.analyses.planning.other_states import OtherState, ParameterSize, other_states
from gradinspect.observers.memory.step_phases import StepPhases
from gradinspect.observers.planning.places import calls_of, place_of
from gradinspect.recording.frames import is_user_file, line_at, line_name, own_frame
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.names.variables import elements_of, isinstance_safely
from gradinspect.recording.source_structure import contains, first_line, gradient_reads, own_sources
from gradinspect.runner.run import Run
from gradinspect.torch_api.hooks import runs_hooks_of_program
from gradinspect.torch_api.patching.classes import is_one_of, module_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import known_version, plain_tensors_only

_GRAD = torch.Tensor.grad
_DATA = torch.Tensor.data
_OFF = (None, False)
_UNSEEN = "no step of an optimizer was seen, as where it is compiled; nor fused=True, for the same reason"


class OptimizerUses:
    """Listens to calls of torch functions, to backward calls and to steps."""

    def __init__(self, run: Run, phases: StepPhases) -> None:
        """Start with none."""
        self._run = run
        self._phases = phases
        self._places: list[NamedPlace] = []
        self._with_foreach: list[NamedPlace] = []
        self._without_fused: list[NamedPlace] = []
        self._num_calls = 0
        self._calls_at_step: MutableMapping[Optimizer, int] = WeakIdKeyDictionary()
        self._options: dict[int, list[tuple[object, ...]]] = {}  # of optimizers, by id, when backward began
        self._updated: MutableMapping[Optimizer, tuple[ParameterSize, ...]] = WeakIdKeyDictionary()
        self.names: list[str] = []  # of their classes
        self._refused = ""
        self._keeps_gradients = False
        self._read_at: set[tuple[str, int]] = set()  # lines that have taken gradients

    @property
    def other_states(self) -> tuple[OtherState, ...]:
        """Estimate what other optimizers would hold; nothing for a part of parameters that ranks share."""
        if not self._updated or (distributed.is_available() and distributed.is_initialized()):
            return ()
        return other_states(size for sizes in self._updated.values() for size in sizes)

    @property
    def refused(self) -> str:
        """Why they cannot step inside backward; empty: they can."""
        is_unseen = not self._places and live_optimizers()
        return _UNSEEN if is_unseen else self._refused or self._read_later()

    @property
    def keeps_gradients(self) -> bool:
        """Whether the program takes gradients after the step that has used them, or may do so later."""
        return self._keeps_gradients or bool(self._read_later())

    @property
    def offer(self) -> StepInBackward | None:
        """Return how they can; None if they cannot, or if there are none."""
        if self.refused or not self._places:
            return None
        return StepInBackward(optimizers=tuple(self._places))

    @property
    def without_foreach(self) -> WithoutForeach | None:
        """Return which ones can update one parameter after the other; None: none of them."""
        return WithoutForeach(optimizers=tuple(self._with_foreach)) if self._with_foreach else None

    @property
    def fused(self) -> Fused | None:
        """Return which ones can update a parameter in one kernel; None: none of them."""
        return Fused(optimizers=tuple(self._without_fused)) if self._without_fused else None

    def backward(self) -> None:
        """Note that a backward call begins."""
        self._num_calls += 1
        self._options = {id(optimizer): _options_of(optimizer) for optimizer in self._calls_at_step}

    def step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note that an optimizer is about to step."""
        if not self._phases.step:
            return
        frame = sys._getframe(1)
        if optimizer not in self._calls_at_step:
            place = place_of(calls_of(optimizer, frame), self._run.base_folder, "optimizer")
            self._places.append(place)
            self._updated[optimizer] = tuple(_sizes_of(optimizer))
            self.names += [name for name in (type(optimizer).__name__,) if name not in self.names]
            self._with_foreach += [place] if uses_foreach(optimizer) else []
            self._without_fused += [place] if can_be_fused(optimizer) else []
        calls, self._calls_at_step[optimizer] = self._calls_at_step.get(optimizer, 0), self._num_calls
        if self._num_calls - calls != 1:
            self._refuse("a step does not follow each backward call", frame)
        has_closure = any(one is not None for one in args[1:]) or kwargs.get("closure") is not None
        self._check(optimizer, frame, has_closure=has_closure)

    def _check(self, optimizer: Optimizer, frame: FrameType, *, has_closure: bool) -> None:
        """Refuse what a single step may show."""
        if not module_of(type(optimizer)).startswith("torch.optim.") or isinstance(optimizer, LBFGS):
            self._refuse(f"{type(optimizer).__name__} may look at all parameters together", None)
        elif has_closure or self._phases.phase == "backward":
            self._refuse("step() is given a closure, or is called inside backward", frame)
        elif runs_hooks_of_program(optimizer):
            self._refuse("the program has hooks on step()", frame)
        elif self._options.get(id(optimizer), _options_of(optimizer)) != _options_of(optimizer):
            self._refuse("the optimizer's options change between backward and step()", frame)
        elif distributed.is_available() and distributed.is_initialized():
            self._refuse("gradients are sent to other ranks", None)

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look at what a torch function is about to take."""
        phase = self._phases.phase
        name, owner = getattr(func, "__name__", ""), getattr(func, "__self__", None)
        if name == "__get__" and owner is _GRAD:
            self._note_read(sys._getframe(1))
        if phase in ("setup", "optimizer") or (self._refused and self._keeps_gradients):
            return
        if name in ("__get__", "__set__"):
            takes_gradient = owner is _GRAD
            takes = takes_gradient or (owner is _DATA and phase == "after backward")
        else:
            takes_gradient = False
            takes = phase == "after backward" and any(_is_parameter(value) for value in (*args, *kwargs.values()))
        if takes and not _is_cleared_by(sys._getframe(1)):
            is_later = phase != "after backward" and self._phases.num_optimizer_steps > 0
            self._keeps_gradients = self._keeps_gradients or (takes_gradient and name == "__get__" and is_later)
            what = "gradients" if takes_gradient else "parameters"
            self._refuse(f"the program takes {what} between backward and zero_grad()", sys._getframe(1))

    def after(
        self, begun: Any, result: Any, _start: int, _end: int, number: int | None, frame: FrameType | None
    ) -> None:
        """Nothing: calls are looked at before they run."""

    def _note_read(self, frame: FrameType | None) -> None:
        user = own_frame(frame)
        if user is not None:
            self._read_at.add((user.f_code.co_filename, line_at(user)))

    def _read_later(self) -> str:
        """Name a line that takes gradients, and has not done so yet; nothing if there is none."""
        for file in own_sources("grad"):
            done = [line for seen, line in self._read_at if seen == file]
            for node in gradient_reads(file):
                if not any(contains(node, line) for line in done):
                    where = line_name(file, first_line(node))
                    return f"the program may take gradients later, on a line that has not done so yet ({where})"
        return ""

    def _refuse(self, why: str, frame: FrameType | None) -> None:
        if not self._refused:
            user = own_frame(frame)
            self._refused = why if user is None else f"{why} ({line_name(user.f_code.co_filename, line_at(user))})"


def _is_parameter(value: object) -> bool:
    """Return whether a value is a parameter; on fake tensors it is one by its mark, not by its class."""
    return isinstance_safely(value, (torch.Tensor,)) and isinstance(value, nn.Parameter)


def uses_foreach(optimizer: Optimizer) -> bool:
    """Return whether an optimizer was told to update parameters together; on the CPU results are the same without."""
    return any(group.get("foreach") is True for group in optimizer.param_groups) and all(
        parameter.device.type == "cpu" for group in optimizer.param_groups for parameter in group["params"]
    )


def _sizes_of(optimizer: Optimizer) -> Iterator[ParameterSize]:
    with plain_tensors_only():
        for parameter in (one for group in optimizer.param_groups for one in group["params"]):
            if parameter.requires_grad:
                yield ParameterSize(shape=tuple(parameter.shape), item_bytes=ops.element_size(parameter))


def can_be_fused(optimizer: Optimizer) -> bool:
    """Return whether an optimizer of torch has a fused kernel, and was not told to use it."""
    if not module_of(type(optimizer)).startswith("torch.optim."):
        return False
    groups = optimizer.param_groups
    is_plain = all(group.get(name) in _OFF for group in groups for name in ("differentiable", "capturable"))
    return is_plain and all("fused" in group and group["fused"] in _OFF for group in groups)


def _is_cleared_by(frame: FrameType | None) -> bool:
    """Return whether torch's own `zero_grad` takes a gradient; there may be several modes around what it calls."""
    while frame is not None and frame.f_code.co_name == "__torch_function__":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "zero_grad" and not is_user_file(frame.f_code.co_filename)


def _options_of(optimizer: Optimizer) -> list[tuple[object, ...]]:
    """Note the options of an optimizer: numbers by their value, tensors by their version, anything else by identity."""
    return [
        (name, _noted(value)) for group in optimizer.param_groups for name, value in group.items() if name != "params"
    ]


def _noted(value: object) -> object:
    if is_one_of(value, (int, float, bool, str)):
        return value
    if is_one_of(value, (tuple, list)):
        return tuple(map(_noted, elements_of(value)))
    return id(value), known_version(value) if isinstance_safely(value, (torch.Tensor,)) else None
