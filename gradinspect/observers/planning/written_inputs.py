"""Notice modules that write to what they are given, such as `nn.ReLU(inplace=True)`.

NOTE [What a segment is computed again from] in `analyses.planning.segments` says why.
"""

from collections.abc import Callable, MutableMapping
from typing import Any
from weakref import ReferenceType, ref

from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import plain_tensors
from gradinspect.torch_api.tensors import known_version, plain_tensors_only


class WrittenInputs:
    """Compares the versions of inputs before and after each call of a module."""

    def __init__(self) -> None:
        """Start with none."""
        self._modules: MutableMapping[nn.Module, None] = WeakIdKeyDictionary()
        self._running: list[tuple[ReferenceType[nn.Module], list[int | None]]] = []

    def attach(self, recorder: Recorder, note: Callable[[Exception], object]) -> None:
        """Watch as long as something is recorded.

        Args:
            recorder: The recorder.
            note: Called with an error of ours.
        """
        recorder.before_modules(self._entered, note)
        recorder.after_modules(self._left, note)

    def __contains__(self, module: nn.Module) -> bool:
        """Return whether a module wrote to an input."""
        return module in self._modules

    def _entered(self, module: nn.Module, args: object) -> None:
        self._running.append((ref(module), _versions(args)))

    def _left(self, module: nn.Module, args: Any, _output: object) -> None:
        while self._running:  # calls that another hook has ended early are still there
            running, before = self._running.pop()
            if running() is module:
                if before != _versions(args):
                    self._modules[module] = None
                return


def _versions(args: object) -> list[int | None]:
    with plain_tensors_only():
        return [known_version(tensor) for tensor in plain_tensors(args)]
