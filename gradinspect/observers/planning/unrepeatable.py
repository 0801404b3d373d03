"""Notice modules whose forward gives something else when it runs again, as under a checkpoint.

NOTE [What a checkpoint does not put back]
`torch.utils.checkpoint` puts back what torch's own generators had drawn, and the code that is pasted puts back the
statistics of batch norms. Neither knows of other buffers and numbers that a forward writes (a power iteration, a
codebook, a counter), nor of generators of Python, NumPy or the program: what runs again goes on with what the first run
has left, and no error is raised. So such a module is not checkpointed, nor is what contains it.
"""

import sys
from collections.abc import Callable, MutableMapping
from random import getstate
from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.modules import own_buffers
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.tensors import known_version, plain_tensors_only

_NORMS = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm,
    nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d,
)  # fmt: skip
_PUT_BACK = ("running_mean", "running_var", "num_batches_tracked")  # of a batch norm


class _State(NamedTuple):
    """What a forward may change."""

    buffers: dict[str, tuple[int, int | None]]
    numbers: dict[str, object]
    python: object
    numpy: object

    def changed_since(self, before: "_State", name: str) -> str:
        """Say what differs in a module of this class: "changes 'calls' of Block"; nothing if all is the same."""
        for what, now, then in (("the buffer ", self.buffers, before.buffers), ("", self.numbers, before.numbers)):
            key = next((key for key, value in now.items() if key in then and then[key] != value), None)
            if key is not None:
                return f"changes {what}'{key}' of {name}"
        if self.python != before.python:
            return "draws from Python's random"
        return "draws from numpy.random" if self.numpy != before.numpy else ""


class Unrepeatable:
    """Compares the state of each module, and of generators, before and after each call of it that has gradients."""

    def __init__(self) -> None:
        """Start with none."""
        self._reasons: MutableMapping[nn.Module, str] = WeakIdKeyDictionary()
        self._running: list[tuple[ReferenceType[nn.Module], _State | None]] = []

    def attach(self, recorder: Recorder, note: Callable[[Exception], object]) -> None:
        """Watch as long as something is recorded.

        Args:
            recorder: The recorder.
            note: Called with an error of ours.
        """
        recorder.before_modules(self._entered, note)
        recorder.after_modules(self._left, note)
        recorder.listeners.append(self)

    def reason(self, module: nn.Module) -> str:
        """Say what its forward does: "changes the buffer 'u' of Norm"; nothing if it can run again."""
        return self._reasons.get(module, "")

    def before(self, _func: Any, _args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notice a generator of the program's own."""
        generator = kwargs.get("generator")
        if generator is not None and generator is not torch.default_generator and torch.is_grad_enabled():
            self._note("draws from a torch.Generator of the program")

    def after(
        self, begun: Any, result: Any, _start: int, _end: int, number: int | None, frame: FrameType | None
    ) -> None:
        """Nothing: calls are looked at before they run."""

    def _note(self, reason: str) -> None:
        """Note a reason for all modules that are running."""
        for running, _ in self._running:
            module = running()
            if module is not None:
                self._reasons.setdefault(module, reason)

    def _entered(self, module: nn.Module, _args: object) -> None:
        self._running.append((ref(module), _state_of(module) if torch.is_grad_enabled() else None))

    def _left(self, module: nn.Module, _args: Any, _output: object) -> None:
        while self._running:  # calls that another hook has ended early are still there
            running, before = self._running[-1]
            if running() is module:
                reason = "" if before is None else _state_of(module).changed_since(before, type(module).__name__)
                if reason:
                    self._note(reason)
                self._running.pop()
                return
            self._running.pop()


def _state_of(module: nn.Module) -> _State:
    put_back = _PUT_BACK if issubclass(type(module), _NORMS) else ()
    with plain_tensors_only():
        buffers = {
            name: (id(buffer), known_version(buffer))
            for name, buffer in own_buffers(module).items()
            if isinstance(buffer, torch.Tensor) and name not in put_back
        }
    numbers = {name: value for name, value in vars(module).items() if is_one_of(value, (int, float, bool))}
    return _State(buffers, numbers, getstate(), _numpy_state())


def _numpy_state() -> object:
    """Return what NumPy's global generator goes on with; it is made of an array, so as bytes."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is None:
        return None
    _, keys, *rest = numpy_random.get_state()
    return keys.tobytes(), *rest
