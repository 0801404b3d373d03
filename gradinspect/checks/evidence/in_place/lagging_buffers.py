"""Copies of a model that follow its parameters and not its buffers, such as a moving average without the statistics.

NOTE [Lagging]
Two modules are a model and its copy if they are of one class, with the same names and shapes, backward reaches
parameters of the first and none of the second, and the second's change all the same. Its buffers lag if none of those
that change in the model has changed in the copy from look to look, while its parameters did. That matters only if the
copy is called, and the layers with these buffers are in eval mode: in train mode they have statistics of their own.
A copy that is not called, as an average that gets its statistics at the end, is not reported.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from weakref import ReferenceType, ref

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.facts.training import LaggingBuffers
from gradinspect.graph import Frame
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.magnitudes import why_unread
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import Unobserved
from gradinspect.torch_api.modules import own_buffers, own_parameters
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_transforming

LEAST_LOOKS = 2  # in which the parameters had changed, and the buffers had not
LOOKS_EACH = 4  # calls, if there is a model that was not called before, or a copy that was not looked at as often
MAX_ELEMENTS = 1 << 20  # of all buffers of a model; larger ones are not compared
MAX_PARAMETERS = 4
_Values: TypeAlias = dict[str, torch.Tensor]
_Signature: TypeAlias = tuple[type, tuple[tuple[str, torch.Size], ...], tuple[tuple[str, torch.Size], ...]]


@dataclass
class _Pair:
    """A model and its copy, and their values at the last look."""

    model: ReferenceType[nn.Module]
    copy: ReferenceType[nn.Module]
    buffers: _Values  # of the copy, at the first look
    sources: _Values  # of the model, at the first look
    parameters: _Values  # a few of the copy, at the last look
    num_looks: int = 0  # that found new parameters and old buffers
    used: set[str] = field(default_factory=set)  # buffers of layers that were called in eval mode
    has_moved: bool = False  # the buffers of the copy


class _Living(NamedTuple):
    model: nn.Module
    copy: nn.Module
    num_models: int  # that it may be a copy of


@dataclass
class LaggingBuffersLog:
    """Compares copies with their models, in the calls whose number is a power of two. NOTE [Lagging].

    A copy may be called once per epoch, and few epochs are watched: a new one is looked at in some more calls.
    """

    recorder: Recorder
    gradients: GradientUse
    written: Callable[[torch.Tensor], Frame | None]  # the line of the last write to a tensor
    found: dict[int, LaggingBuffers] = field(default_factory=dict)  # by the id of the copy
    _pairs: dict[int, _Pair] = field(default_factory=dict)  # by the same
    _passed_over: dict[int, tuple[ReferenceType[nn.Module], _Values]] = field(default_factory=dict)  # not compared
    _num_calls: int = 0
    _num_models: int = 0  # that were called, when that was last asked
    _num_windows: int = 0  # of the recorder, at the last look

    def begin(self) -> None:
        """Look at the models before a backward call."""
        self._num_calls += 1
        if not self._is_time() or is_capturing() or is_transforming():
            return
        windows = self.recorder.module_windows[self._num_windows :]
        self._num_windows += len(windows)
        numbers = {window.module for window in windows}
        called = {id(module) for number in numbers if (module := self.recorder.modules[number]()) is not None}
        reached = {id(tensor) for one in self.gradients.parameters() if (tensor := one.tensor()) is not None}
        with Unobserved():
            for key, pair in self._pairs.items():
                self._look(key, pair, called)
            for one in _copies(self.recorder.called_modules(), reached):
                why = _why_not_compared(one)
                if why is None:
                    self._remember(one)
                else:
                    self._pass_over(one.copy, why)

    def _is_time(self) -> bool:
        if self._num_calls.bit_count() == 1:
            return True
        if self._num_calls % LOOKS_EACH:
            return False
        num_models, self._num_models = self._num_models, len(self.recorder.called_modules())
        are_new = any(one.num_looks < LEAST_LOOKS and not one.has_moved for one in self._pairs.values())
        return are_new or num_models != self._num_models

    def _pass_over(self, copy: nn.Module, why: str) -> None:
        """Count what is not compared, once its parameters change: what is frozen follows nothing."""
        known, values = self._passed_over.get(id(copy), (None, {}))
        now = _few_parameters(copy)
        if known is None or known() is not copy:
            self._passed_over[id(copy)] = ref(copy), _copied(now)
        elif _changed(values, now):
            self._passed_over[id(copy)] = ref(copy), {}
            self.recorder.errors.pass_over("copy of a model, for its buffers", why)

    def _remember(self, one: _Living) -> None:
        known = self._pairs.get(id(one.copy))
        if known is not None and known.copy() is one.copy:
            return
        buffers, sources = _copied(_buffers(one.copy)), _copied(_buffers(one.model))
        self._pairs[id(one.copy)] = _Pair(
            ref(one.model), ref(one.copy), buffers, sources, _copied(_few_parameters(one.copy))
        )

    def _look(self, key: int, pair: _Pair, called: Collection[int]) -> None:
        model, copy = pair.model(), pair.copy()
        if model is None or copy is None or pair.has_moved:
            return
        now = _few_parameters(copy)
        is_followed, pair.parameters = bool(_changed(pair.parameters, now)), _copied(now)
        moving = _changed(pair.sources, _buffers(model))
        if _changed(pair.buffers, _buffers(copy)):
            pair.has_moved = True
            self.found.pop(key, None)
            return
        pair.used |= {name for name in moving if _is_used(copy, name, called)}
        used = [name for name in moving if name in pair.used]
        pair.num_looks += bool(is_followed and used)
        if pair.num_looks >= LEAST_LOOKS and used:
            line = next((line for one in now.values() if (line := self.written(one)) is not None), None)
            self.found[key] = LaggingBuffers(model=type(model).__name__, names=tuple(used), followed=line)


def _copies(roots: Sequence[nn.Module], reached: Collection[int]) -> Iterator[_Living]:
    """Yield the outermost models of which another one is a copy that no backward call reaches."""
    groups: dict[_Signature, list[nn.Module]] = {}
    modules = {id(module): module for root in roots for _, module in named_modules(root)}
    for module in modules.values():
        buffers = _buffers(module)
        if buffers:
            groups.setdefault(_signature(module, buffers), []).append(module)
    inner: set[int] = set()
    for some in groups.values():
        trained = [one for one in some if any(id(tensor) in reached for tensor in all_parameters(one))]
        others = [one for one in some if not any(id(tensor) in reached for tensor in all_parameters(one))]
        for other in others if trained else ():
            if id(other) not in inner:
                inner.update(id(module) for _, module in named_modules(other))
                yield _Living(trained[0], other, len(trained))


def _why_not_compared(one: _Living) -> str | None:
    """Return the limit that keeps a copy from being compared with its model."""
    if one.num_models > 1:
        return f"of which {one.num_models} are trained that it may be one of"
    is_large = sum(map(ops.numel, _buffers(one.copy).values())) > MAX_ELEMENTS
    return f"larger than {MAX_ELEMENTS:,} elements" if is_large else None


def _signature(module: nn.Module, buffers: _Values) -> _Signature:
    parameters = tuple((name, tensor.shape) for name, tensor in _parameters(module).items())
    return type(module), parameters, tuple((name, tensor.shape) for name, tensor in buffers.items())


def _buffers(module: nn.Module) -> _Values:
    """Return the buffers of floating-point numbers: a count of batches follows of itself or does not matter."""
    return {
        f"{path}.{name}" if path else name: tensor
        for path, one in named_modules(module)
        for name, tensor in own_buffers(one).items()
        if tensor is not None and _is_plain(tensor) and ops.is_floating_point(tensor)
    }


def _parameters(module: nn.Module) -> _Values:
    return {
        f"{path}.{name}" if path else name: tensor
        for path, one in named_modules(module)
        for name, tensor in own_parameters(one).items()
        if tensor is not None and _is_plain(tensor)
    }


def _few_parameters(module: nn.Module) -> _Values:
    by_size = sorted(_parameters(module).items(), key=lambda item: ops.numel(item[1]))
    return dict(by_size[:MAX_PARAMETERS])


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether it has values to compare."""
    is_dense = type(tensor) in (torch.Tensor, nn.Parameter) and tensor.layout is torch.strided
    return is_dense and why_unread(tensor) is None and ops.numel(tensor) > 0


def _copied(values: _Values) -> _Values:
    return {name: ops.clone(ops.detach(tensor)) for name, tensor in values.items()}


def _changed(before: _Values, now: _Values) -> list[str]:
    """List the names under which there are other values than before."""
    return [name for name, tensor in now.items() if name in before and not _is_equal(before[name], tensor)]


def _is_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.device == other.device and one.dtype is other.dtype and ops.equal(one, ops.detach(other))


def _is_used(copy: nn.Module, name: str, called: Collection[int]) -> bool:
    """Return whether the layer that has a buffer was called, and is in eval mode."""
    path, _, _ = name.rpartition(".")
    return any(one == path and id(layer) in called and not layer.training for one, layer in named_modules(copy))
