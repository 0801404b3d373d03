"""Notice modules that write to what they are given, such as `nn.ReLU(inplace=True)`.

NOTE [What a segment is computed again from] in `analyses.planning.segments` says why.
"""

from typing import Any
from weakref import ReferenceType, WeakSet, ref

import torch
from torch import nn

from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import plain_tensors
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.tensors import known_version, plain_tensors_only


class WrittenInputs:
    """Compares the versions of inputs before and after each call of a module."""

    def __init__(self) -> None:
        """Start with none."""
        self._modules = WeakSet[nn.Module]()
        self._running: list[tuple[ReferenceType[nn.Module], list[int | None]]] = []

    def attach(self, recorder: Recorder) -> None:
        """Watch as long as something is recorded."""
        recorder.before_modules(self._entered)
        recorder.after_modules(self._left)

    def __contains__(self, module: nn.Module) -> bool:
        """Return whether a module wrote to an input."""
        return module in self._modules

    @uncompiled
    def _entered(self, module: nn.Module, args: object) -> None:
        if not torch.compiler.is_compiling():
            self._running.append((ref(module), _versions(args)))

    @uncompiled
    def _left(self, module: nn.Module, args: Any, _output: object) -> None:
        if torch.compiler.is_compiling():
            return
        while self._running:  # calls that another hook has ended early are still there
            running, before = self._running.pop()
            if running() is module:
                if before != _versions(args):
                    self._modules.add(module)
                return


def _versions(args: object) -> list[int | None]:
    with plain_tensors_only():
        return [known_version(tensor) for tensor in plain_tensors(args)]
