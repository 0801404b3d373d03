"""Evaluations of a model that is in train mode: dropout and BatchNorm are active in what is compared with labels.

NOTE [Train mode on purpose]
Without a graph, what a layer in train mode makes may be meant so: samples of a generator, statistics that are computed
again, targets of a teacher, actions of a policy. So it counts only if it is compared with labels without a graph as
well, as an evaluation does, after an optimizer has stepped. Silent are programs that know of the mode: that put the
layer into eval mode anywhere, or into train mode after the last step. The loss of the batch that was just trained on is
no evaluation either, and labels that are all the same, as a discriminator has them for what a generator makes, or that
the scores were made from, as by a generator of classes, are none of data.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from msgspec import Struct
from torch import nn

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import REGRESSIONS
from gradinspect.checks.evidence.targets.uninformative import OF_CLASSES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.training import TrainModeEvaluation
from gradinspect.checks.facts.value_flow import OUTSIDE, ancestors
from gradinspect.graph import Frame
from gradinspect.recording.names.variables import isinstance_safely, local_variables
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import is_grad_enabled, ops

MOST_LINES = 64  # on which layers are called without a graph, and for which calls are looked at again
_DROPOUTS = frozenset(("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"))
_NORMS = frozenset(("batch_norm",))
_LOSSES = OF_CLASSES | REGRESSIONS
_EQUALS = frozenset(("eq",))
_CHOICES = frozenset(("argmax", "max", "topk"))  # of a class
_TRAINING_OF_NORM = 5  # the place of an argument of batch_norm()
_TRAINING_OF_DROPOUT = 2
MOST_FRAMES = 12  # of torch between a layer and the function that it calls
MOST_CALLS = 3  # of a line that are looked at
MOST_ELEMENTS = 65_536  # of labels that are read
MOST_ACTIVE = 4096  # calls of layers that are remembered


class _Active(NamedTuple):
    """A call of a function by a layer in train mode."""

    kind: str  # "BatchNorm"
    line: int | None  # of the program
    layer: ReferenceType[nn.Module]


class _Seen(Struct):
    """The evaluations on a line."""

    function: str
    num_calls: int = 0
    layers: dict[str, int | None] = {}  # what is active -> the line of the program that called it


class EvaluationLog:
    """Looks at layers that are called without a graph, and at what is compared then. NOTE [Train mode on purpose]."""

    functions = _DROPOUTS | _NORMS | _LOSSES | _EQUALS
    layers = _DROPOUTS | _NORMS

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made what is compared."""
        self._flow = flow
        self._active: dict[int, _Active] = {}  # by the call
        self._lines: set[int | None] = set()  # on which layers were called without a graph
        self._trained: tuple[tuple[int, ...], float] | None = None  # the last target of a loss with a graph
        self._seen: dict[int | None, _Seen] = {}
        self.is_meant: Callable[[nn.Module], bool] = lambda _layer: False
        self.has_stepped: Callable[[], bool] = lambda: False

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function in _DROPOUTS or function in _NORMS:
            if not is_grad_enabled():
                self._layer(function, args, kwargs, number)
        elif is_grad_enabled() and function in _LOSSES and _has_graph(argument(args, kwargs, 0, "input")):
            target: Any = argument(args, kwargs, 1, "target")
            self._trained = self._trained if type(target) is not torch.Tensor else _outline(target)
        elif self._active and self.has_stepped():  # also behind torch.no_grad(), of what was made inside
            self._compared(function, args, kwargs, number)

    def is_new(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> bool:
        """Return whether a layer is active in a call without a graph that begins on a line that was not looked at."""
        is_known = number in self._lines or len(self._lines) >= MOST_LINES
        return not is_known and not is_grad_enabled() and _is_active(function, args, kwargs)

    def _layer(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        layer = _layer_that_calls(sys._getframe(1)) if _is_active(function, args, kwargs) else None
        self._lines.add(number)
        if layer is not None and len(self._active) < MOST_ACTIVE:
            kind = "BatchNorm" if function in _NORMS else "dropout"
            self._active[len(self._flow.calls)] = _Active(kind, number, ref(layer))

    def _compared(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a comparison with labels."""
        first: Any = argument(args, kwargs, 0, "input")
        second: Any = argument(args, kwargs, 1, "target" if function in _LOSSES else "other")
        if type(first) is not torch.Tensor or type(second) is not torch.Tensor:
            return
        seen = self._seen.setdefault(number, _Seen(function))
        if seen.num_calls >= MOST_CALLS:
            return
        made = self._flow.read(first).call
        if function in _EQUALS and not self._is_choice(made):
            return
        behind = ancestors(self._flow.calls, made) if made != OUTSIDE else set()
        known = (self._active[call] for call in sorted(behind & self._active.keys()))
        active = [(one, layer) for one in known if (layer := one.layer()) is not None]
        if not active or any(self.is_meant(layer) for _, layer in active):
            return
        if (function in _LOSSES and self._trained == (_outline(second) or ())) or self._is_made_up(second, behind):
            return
        seen.num_calls += 1
        for one, _ in active:
            seen.layers.setdefault(one.kind, one.line)

    def _is_made_up(self, labels: torch.Tensor, behind: Collection[int]) -> bool:
        """Return whether some labels are none of data: they have one value, or the scores were made from them."""
        made = self._flow.read(labels).call
        if made in behind and made != OUTSIDE and not ops.is_floating_point(labels):
            return True
        if not is_small_and_readable(labels, MOST_ELEMENTS) or ops.numel(labels) < 2:  # one has one
            return False
        with unobserved():
            values = ops.detach(labels)
            return bool(ops.item(ops.all(ops.eq(values, ops.getitem(ops.flatten(values), 0)))))

    def _is_choice(self, made: int) -> bool:
        """Return whether a call chooses a class, perhaps as one of two results."""
        if made == OUTSIDE:
            return False
        calls = self._flow.calls
        before = [calls[read.call] for read in calls[made].reads if read.call != OUTSIDE]
        return any(one.name in _CHOICES for one in (calls[made], *before))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[TrainModeEvaluation]:
        """Yield the first line that compares what a layer in train mode has made, for each line that calls layers."""
        named = set[int | None]()
        for number, seen in self._seen.items():
            called = next(iter(seen.layers.values()), None)
            if seen.num_calls and called not in named:
                named.add(called)
                yield TrainModeEvaluation(
                    function=seen.function,
                    layers=tuple(sorted(seen.layers)),
                    called=frame_of(called),
                    compared=frame_of(number),
                )


def _is_active(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a layer is in train mode, and does something."""
    given = argument(args, kwargs, _TRAINING_OF_NORM if function in _NORMS else _TRAINING_OF_DROPOUT, "training")
    rate = argument(args, kwargs, 1, "p") if function in _DROPOUTS else None
    return (given is True or (given is None and function in _DROPOUTS)) and rate != 0


def _has_graph(output: Any) -> bool:
    """Return whether a loss is computed to be differentiated; of a tensor of another class, it may be."""
    return type(output) is not torch.Tensor or bool(output.requires_grad)


def _outline(target: torch.Tensor) -> tuple[tuple[int, ...], float] | None:
    """Return what tells the labels of one batch from those of others; None if they are not to be read."""
    if not is_small_and_readable(target, MOST_ELEMENTS):
        return None
    with unobserved():
        return tuple(target.shape), float(ops.item(ops.sum(ops.to(ops.detach(target), torch.float64))))


def _layer_that_calls(frame: FrameType | None) -> nn.Module | None:
    """Return the module of torch or of the program whose forward calls a function."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            return None
        if frame.f_code.co_name == "forward":
            layer = local_variables(frame).get("self")
            return layer if isinstance_safely(layer, (nn.Module,)) else None
        frame = frame.f_back
    return None
