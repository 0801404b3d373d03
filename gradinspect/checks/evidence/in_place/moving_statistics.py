"""Frozen parts that the program puts into eval mode, and that `train()` of the model around them puts back.

NOTE [Undone]
A part counts if eval() was called of itself, on a line of the program's own, and it was not called in eval mode before
train() of what has it undid that: a program that puts a part into eval mode for some of its calls means it. None of its
parameters may require grad in the backward calls that follow, and a call of its own must have run layers that act
differently.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from weakref import ReferenceType, ref

from torch import nn

from gradinspect.checks.facts.training import UndoneEval
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.recorder import Recorder

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
LEAST_CALLS = 2  # backward calls after it was undone


@dataclass
class _Part:
    """A module of which eval() was called."""

    module: ReferenceType[nn.Module]
    put: int | None  # the frame
    num_windows: int  # of the recorder, by then
    undone: int | None = None  # the frame
    num_calls: int = 0  # backward calls since


@dataclass
class UndoneEvals:
    """Tracks parts in eval mode. NOTE [Undone]."""

    recorder: Recorder
    folder: Path
    found: dict[int, UndoneEval] = field(default_factory=dict)
    _parts: dict[int, _Part] = field(default_factory=dict)

    def put(self, module: nn.Module, frame: FrameType) -> None:
        """Note that a call of the program has set the mode of a module."""
        number = self.recorder.frames.number_of(frame)
        self._parts.pop(id(module), None)
        if not module.training and number is not None:
            code, _ = next(self.recorder.frames.chain(number))
            if is_own_file(code.co_filename):
                self._parts[id(module)] = _Part(ref(module), number, len(self.recorder.module_windows))

    def inherited(self, module: nn.Module, frame: FrameType) -> None:
        """Note that a module got the mode of the one that has it."""
        part = self._parts.get(id(module))
        if part is None or part.undone is not None or not module.training:
            return
        since = self.recorder.module_windows[part.num_windows :]
        if any(self.recorder.modules[number]() is module for number in {window.module for window in since}):
            del self._parts[id(module)]
        else:
            part.undone = self.recorder.frames.number_of(frame)

    def begin(self, called: Collection[int]) -> None:
        """Look at the parts before a backward call.

        Args:
            called: The ids of the modules that were called since the last one.
        """
        for key, part in list(self._parts.items()):
            module = part.module()
            if module is None or part.undone is None or key not in called:
                continue
            if any(parameter.requires_grad for parameter in all_parameters(module)):
                del self._parts[key]
                continue
            layers = tuple(name for name, one in named_modules(module) if id(one) in called and updates(one))
            part.num_calls += bool(layers)
            if part.num_calls == LEAST_CALLS:
                put, undone = (self.recorder.frames.record(one, self.folder) for one in (part.put, part.undone))
                self.found[key] = UndoneEval(part=self._path(module), layers=layers, put=put, undone=undone)

    def _path(self, part: nn.Module) -> str:
        for root in self.recorder.called_modules():
            for path, module in named_modules(root):
                if module is part and path:
                    return path
        return type(part).__name__


def updates(module: nn.Module) -> bool:
    """Return whether a layer changes its running statistics in train mode."""
    is_norm = isinstance(module, BATCH_NORMS) and module.momentum != 0
    return is_norm and module.training and bool(module.track_running_stats)
