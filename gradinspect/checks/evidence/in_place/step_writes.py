"""Which optimizer is stepping, and what a step of torch's own optimizers writes, once for each parameter.

NOTE [Steps of torch]
A step runs several operators for each parameter. What they do is known: they write to the parameters and to what the
optimizer keeps, on the line that calls `step`, and make no graph. So they are not looked at one by one; the versions of
the parameters before and after the step show which were written. That holds only while all code in between is torch's,
so not for a step with a closure or a hook, by an optimizer or of a tensor of the program's own. A call from outside of
torch ends it: the step has failed, or calls something that the program has put there.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.checks.evidence.optimizer_steps import heard_steps
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.hooks import runs_hooks_of_program
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.tensors import known_version, plain_tensors_only, version_of

Target = tuple[Tensor, int, Tensor | None]  # with its version, and its bytes, before it was written
_TENSORS = (Tensor, nn.Parameter)


class _Begun(NamedTuple):
    """A step of torch that runs."""

    thread: int
    start: int  # the next sequence number before it
    parameters: Sequence[Target]
    silent: frozenset[int]  # ids of those whose version may stay as it is


class StepWrites:
    """Tracks which optimizer steps. Use it as a context manager, around the program."""

    def __init__(
        self,
        recorder: Recorder,
        contents: Callable[[Sequence[Tensor]], dict[int, Tensor]],
        note: Callable[[str, int, int, FrameType | None, Sequence[Target]], None],
    ) -> None:
        """Set up.

        Args:
            recorder: The recorder.
            contents: Copies what is about to be written silently.
            note: Stores a write.
        """
        self._recorder = recorder
        self._contents = contents
        self._note = note
        self._names: list[str] = []  # of those that are stepping
        self._known_names: dict[tuple[int, int | None], str] = {}  # by the id of an optimizer, and the line that steps
        self.running: _Begun | None = None  # the step of torch that runs
        self.is_resting = False  # no writes are noted
        self._attached = ExitStack()

    def __enter__(self) -> "StepWrites":
        """Register hooks of all optimizers."""
        self._attached.enter_context(heard_steps(self._recorder, self._before_step, self._after_step))
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the hooks."""
        self._attached.close()
        self.running = None

    @property
    def optimizer(self) -> str | None:
        """The name of the optimizer that is stepping."""
        return self._names[-1] if self._names else None

    def covers(self, frame: FrameType) -> bool:
        """Return whether a call from this frame is part of the step that runs. NOTE [Steps of torch]."""
        if self.running is None or self.running.thread != get_ident():
            return False
        if str(frame.f_globals.get("__name__")).startswith("torch."):
            return True
        with plain_tensors_only():
            self._finish(frame)
        return False

    def _before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.is_resting or not self._recorder.is_here:
            return
        place = id(optimizer), self._recorder.frames.number_of(sys._getframe(1))
        name = self._known_names.get(place)
        if name is None:
            try:
                name = name_of_optimizer(optimizer)
            except Exception:  # inspecting objects of the program may raise
                name = type(optimizer).__name__
            self._known_names[place] = name
        self._names.append(name)
        if _is_of_torch(optimizer) and not _runs_code_of_program(optimizer, args, kwargs):
            self._begin(optimizer)

    def _begin(self, optimizer: Optimizer) -> None:
        with plain_tensors_only():
            groups = optimizer.param_groups
            held = [tensor for group in groups for tensor in group["params"]]
            if not all(is_one_of(tensor, _TENSORS) for tensor in held):
                return
            given = [tensor for tensor in held if tensor.grad is not None]
            versions = [known_version(tensor) for tensor in given]
            if None in versions:
                return
            fused = [tensor for group in groups if group.get("fused") for tensor in group["params"]]
            contents = self._contents(fused) if fused else {}
            parameters = [
                (tensor, version or 0, contents.get(id(tensor)))
                for tensor, version in zip(given, versions, strict=True)
            ]
            self.running = _Begun(get_ident(), next_sequence_nr(), parameters, frozenset(map(id, fused)))

    def _after_step(self, _optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not self._recorder.is_here:
            return
        if self.running is not None:
            with plain_tensors_only():
                self._finish(sys._getframe(1))
        if self._names:
            self._names.pop()

    def _finish(self, frame: FrameType) -> None:
        begun, self.running = self.running, None
        if begun is None:
            return
        written = [one for one in begun.parameters if id(one[0]) in begun.silent or version_of(one[0]) != one[1]]
        self._note(f"{self.optimizer}.step()", begun.start, next_sequence_nr(), frame, written)


def _is_of_torch(optimizer: Optimizer) -> bool:
    """Return whether torch wrote the step of an optimizer, which records no graph."""
    is_of_torch = str(getattr(type(optimizer).step, "__module__", "")).startswith("torch.optim.")
    groups = optimizer.param_groups
    return is_of_torch and not any(
        key != "params" and (isinstance(value, Tensor) or (key == "differentiable" and value))
        for group in groups
        for key, value in group.items()
    )


def _runs_code_of_program(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a step calls what the program gave: a closure, or hooks."""
    is_given = any(value is not None for value in (*args[1:], *kwargs.values()))
    return is_given or runs_hooks_of_program(optimizer)
