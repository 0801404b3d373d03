"""Models that are in eval mode while an optimizer trains them, and the line that switched the mode.

NOTE [Eval mode on purpose]
To freeze BatchNorm, people call eval() on those layers, or on a frozen part, and the model around them stays in train
mode. So a model counts only if it is in eval mode as a whole, and all of its parameters are trained. One that is in
eval mode from its first call on is so on purpose: a checkpoint that is trained on without dropout. So it must have been
trained in train mode before, or called without a graph, as an evaluation does. Dropout in it is then switched off.
BatchNorm in it uses its running statistics: that is a mistake if they were never computed, or if the model was trained
in train mode before; otherwise they come from a checkpoint, and may be kept on purpose.

A function such as F.dropout() does not know the mode, so one that a module in eval mode calls in its forward pass is a
mistake, unless the call itself says `training=`.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from weakref import ReferenceType, ref

import torch
from torch import nn
from torch.optim import Optimizer

from gradinspect.checks.evidence.in_place.moving_statistics import BATCH_NORMS, UndoneEvals
from gradinspect.checks.evidence.training.gradient_use import held_by
from gradinspect.checks.facts.training import DropoutInEval, EvalTraining
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_own_file, line_at
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.names.variables import local_variables
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import enclosing
from gradinspect.recording.threads.threads import NOWHERE

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_OWN_DROPOUT = (nn.RNNBase, nn.MultiheadAttention)
_FUNCTIONAL = (nn.functional.__file__, torch.overrides.__file__)
MODULE_FILE = nn.Module.train.__code__.co_filename


class EvalModel(NamedTuple):
    """A model that backward went through in eval mode."""

    module: ReferenceType[nn.Module]
    name: str
    dropouts: tuple[str, ...]
    batch_norms: tuple[str, ...]  # whose running statistics cannot be meant to stay
    backward: int | None


class _Switched(NamedTuple):
    """A module whose mode the program has set."""

    module: ReferenceType[nn.Module]
    line: int | None  # the last that did
    was_in_eval: bool  # ever


@dataclass
class Modes:
    """Tracks the modes of models. The log calls it with what it sees."""

    recorder: Recorder
    folder: Path = field(default_factory=Path)  # files below it are named relative to it
    found: dict[int, EvalTraining] = field(default_factory=dict)
    dropouts: dict[int | None, DropoutInEval] = field(default_factory=dict)  # by the frame
    _switched: dict[int, _Switched] = field(default_factory=dict)
    _num_windows: int = 0  # of the recorder, that were looked at
    _in_eval: list[EvalModel] = field(default_factory=list)  # in the last backward
    _trained_before: set[int] = field(default_factory=set)
    _evaluated: set[int] = field(default_factory=set)
    _since_step: set[int] = field(default_factory=set)  # modules whose mode was set since an optimizer stepped

    def __post_init__(self) -> None:
        """Track parts, too."""
        self.undone = UndoneEvals(self.recorder, self.folder)

    def dropped(self, frame: FrameType | None) -> None:
        """Look at a call of F.dropout(), in the code that called it."""
        while frame is not None and frame.f_code.co_filename in _FUNCTIONAL:
            frame = frame.f_back
        if frame is None or not is_own_file(frame.f_code.co_filename):
            return
        module, number = local_variables(frame).get("self"), self.recorder.frames.number_of(frame)
        if number in self.dropouts or not isinstance(module, nn.Module) or module.training:
            return
        if not _says_training(frame):
            line = self.recorder.frames.record(number, self.folder)
            self.dropouts[number] = DropoutInEval(module=type(module).__name__, called=line)

    def switch(self, module: nn.Module, frame: FrameType) -> None:
        """Note that the mode of a module was set, unless by the module that has it."""
        is_part = frame.f_code.co_name == "train" and frame.f_code.co_filename == MODULE_FILE
        if is_part:
            self.undone.inherited(module, frame)
            return
        self.undone.put(module, frame)
        self._since_step.add(id(module))
        before = self._switched.get(id(module))
        was_in_eval = before is not None and before.was_in_eval and before.module() is module
        number = self.recorder.frames.number_of(frame)
        self._switched[id(module)] = _Switched(ref(module), number, was_in_eval or not module.training)

    def is_set(self, layer: nn.Module) -> bool:
        """Return whether a layer, or what contains it, was ever put into eval mode, or got its mode since a step."""
        roots = ((one.module(), one.was_in_eval) for one in tuple(self._switched.values()))
        return any(
            was_in_eval or id(root) in self._since_step
            for root, was_in_eval in roots
            if root is not None and any(one is layer for _, one in named_modules(root))
        )

    def begin(self, reached: Iterable[torch.Tensor], backward: int | None) -> None:
        """Look at the models that were called since the last backward call."""
        windows = self.recorder.module_windows[self._num_windows :]
        self._num_windows += len(windows)
        outer = [window for window in windows if window.parent == NOWHERE]
        numbers = {window.module for window in windows}
        called = {id(module) for number in numbers if (module := self.recorder.modules[number]()) is not None}
        self.undone.begin(called)
        without_graph = {window.module for window in outer if window.start == window.end}
        self._in_eval = []
        for number in dict.fromkeys(window.module for window in outer):
            root = self.recorder.modules[number]()
            if root is None:
                continue
            if root.training:
                self._trained_before.add(id(root))
                continue
            if number in without_graph:
                self._evaluated.add(id(root))
            if id(root) not in self._trained_before | self._evaluated:
                continue
            model = self._model(root, called, set(map(id, reached)), backward)
            if model is not None:
                self._in_eval.append(model)

    def step(self, optimizer: Optimizer, frame: FrameType) -> None:
        """Note which of the models in eval mode are trained."""
        self._since_step.clear()
        if not self._in_eval:
            return
        held = {id(tensor) for tensor in held_by(optimizer)}
        for model in self._in_eval:
            root = model.module()
            if root is None or root.training or id(root) in self.found:
                continue
            if all(id(parameter) in held for parameter in all_parameters(root)):
                switched = self._switched.get(id(root))
                line = switched.line if switched is not None and switched.module() is root else None
                self.found[id(root)] = EvalTraining(
                    model=model.name,
                    dropouts=model.dropouts,
                    batch_norms=model.batch_norms,
                    switched=self._line(line),
                    backward=self._line(model.backward),
                    step=self._line(self.recorder.frames.number_of(frame)),
                )

    def _line(self, number: int | None) -> Frame | None:
        return self.recorder.frames.record(number, self.folder)

    def _model(self, root: nn.Module, called: set[int], reached: set[int], backward: int | None) -> EvalModel | None:
        """Return a model in eval mode if that makes a difference. NOTE [Eval mode on purpose]."""
        modules = named_modules(root)
        if any(module.training for _, module in modules):
            return None
        parameters = list(all_parameters(root))
        if not any(id(one) in reached for one in parameters) or not all(one.requires_grad for one in parameters):
            return None
        ran = [(path, module) for path, module in modules if id(module) in called]
        dropouts = tuple(path or type(module).__name__ for path, module in ran if _drops(module))
        was_trained = id(root) in self._trained_before
        norms = tuple(
            path or type(module).__name__
            for path, module in ran
            if isinstance(module, BATCH_NORMS) and (was_trained or _has_no_statistics(module))
        )
        if not dropouts and not norms:
            return None
        return EvalModel(ref(root), type(root).__name__, dropouts, norms, backward)


def _drops(module: nn.Module) -> bool:
    if isinstance(module, _DROPOUTS):
        return float(module.p) > 0
    return isinstance(module, _OWN_DROPOUT) and float(module.dropout) > 0


def _has_no_statistics(module: nn.Module) -> bool:
    """Return whether the running statistics of a BatchNorm are those that it was made with."""
    count = getattr(module, "num_batches_tracked", None)
    return isinstance(count, torch.Tensor) and not bool(count)


def _says_training(frame: FrameType) -> bool:
    """Return whether a line passes `training` to a dropout, or no such call is found there."""
    calls = [
        one for around in enclosing(frame.f_code.co_filename, line_at(frame)) for one in ast.walk(around)
        if isinstance(one, ast.Call) and "dropout" in ast.unparse(one.func)
        and one.lineno <= line_at(frame) <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    return not calls or any(
        len(one.args) > 2 or any(word.arg in ("training", None) for word in one.keywords) for one in calls
    )
