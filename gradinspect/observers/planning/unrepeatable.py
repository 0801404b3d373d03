"""Notice modules whose forward gives something else when it runs again, as under a checkpoint, or writes to its inputs.

NOTE [What a checkpoint does not put back]
`torch.utils.checkpoint` puts back what torch's own generators had drawn, and the code that is pasted puts back the
statistics of batch norms. Neither knows of other buffers that a forward writes (a power iteration, a codebook), nor of
generators of Python, NumPy or the program: what runs again goes on with what the first run has left, and no error is
raised. So such a module is not checkpointed, nor is what contains it. What only the first of several calls changes,
such as a table that is made once, is left as it is. Attributes, lists and global variables may be written anew with the
same by each run: NOTE [What a second run leaves] in `second_runs.py` is about them.
What writes to its inputs, such as `nn.ReLU(inplace=True)`, NOTE [What a segment is computed again from] is about.
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

from gradinspect.observers.planning.carried_state import line_that_changes
from gradinspect.observers.planning.second_runs import PUT_BACK, is_put_back
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import plain_tensors
from gradinspect.torch_api.modules import own_buffers
from gradinspect.torch_api.tensors import known_version, plain_tensors_only


class _State(NamedTuple):
    """What a forward may change."""

    buffers: dict[str, tuple[int, int | None]]
    python: object
    numpy: object

    def changed_since(self, before: "_State", module: nn.Module) -> str:
        """Say what differs: "changes the buffer 'u' of Norm (model.py:12)"; nothing if all is the same."""
        buffer = next((key for key, value in self.buffers.items() if before.buffers.get(key, value) != value), None)
        if buffer is not None:
            line = line_that_changes(module, buffer)
            return f"changes the buffer '{buffer}' of {type(module).__name__}" + (f" ({line})" if line else "")
        if self.python != before.python:
            return "draws from Python's random"
        return "draws from numpy.random" if self.numpy != before.numpy else ""


class _Call(NamedTuple):
    """One call of a module that is running."""

    module: ReferenceType[nn.Module]
    versions: list[int | None]  # of its inputs
    state: _State | None  # None: it has no gradients


class Unrepeatable:
    """Compares the inputs and the state of each module, and generators, before and after each call of it.

    Only calls that have gradients are computed again.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._reasons: MutableMapping[nn.Module, str] = WeakIdKeyDictionary()
        self._of_first: MutableMapping[nn.Module, str] = WeakIdKeyDictionary()  # calls
        self._num_calls: MutableMapping[nn.Module, int] = WeakIdKeyDictionary()  # with gradients
        self._writing: MutableMapping[nn.Module, None] = WeakIdKeyDictionary()
        self._running: list[_Call] = []

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
        only = self._of_first.get(module, "") if self._num_calls.get(module, 0) <= 1 else ""
        return self._reasons.get(module, "") or only

    def writes_input(self, module: nn.Module) -> bool:
        """Return whether a module wrote to an input."""
        return module in self._writing

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
        for call in self._running:
            module = call.module()
            if module is not None:
                is_first = self._num_calls.get(module, 0) <= 1
                (self._of_first if is_first else self._reasons).setdefault(module, reason)

    def _entered(self, module: nn.Module, args: object) -> None:
        state = None
        if torch.is_grad_enabled():
            self._num_calls[module] = self._num_calls.get(module, 0) + 1
            state = _state_of(module)
        self._running.append(_Call(ref(module), _versions(args), state))

    def _left(self, module: nn.Module, args: object, _output: object) -> None:
        while self._running and self._running[-1].module() is not module:
            self._running.pop()  # calls that another hook has ended early
        if not self._running:
            return
        _, versions, before = self._running[-1]
        known = self._reasons.get(module, "")  # to find the line takes time
        reason = known if before is None or known else _state_of(module).changed_since(before, module)
        if reason and before is not None:
            self._note(reason)
        if versions != _versions(args):
            self._writing[module] = None
        self._running.pop()


def _versions(args: object) -> list[int | None]:
    with plain_tensors_only():
        return [known_version(tensor) for tensor in plain_tensors(args)]


def _state_of(module: nn.Module) -> _State:
    put_back = PUT_BACK if is_put_back(module) else ()
    with plain_tensors_only():
        buffers = {
            name: (id(buffer), known_version(buffer))
            for name, buffer in own_buffers(module).items()
            if isinstance(buffer, torch.Tensor) and name not in put_back
        }
    return _State(buffers, getstate(), _numpy_state())


def _numpy_state() -> object:
    """Return what NumPy's global generator goes on with; it is made of an array, so as bytes."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is None:
        return None
    _, keys, *rest = numpy_random.get_state()
    return keys.tobytes(), *rest
