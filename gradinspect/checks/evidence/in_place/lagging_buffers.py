"""Copies of a model that follow its parameters and not its buffers, such as a moving average without the statistics.

NOTE [Lagging]
Two modules are a model and its copy if they are of one class, with the same names and shapes, backward reaches
parameters of the first and none of the second, and the second's change all the same. Its buffers lag if none of those
that change in the model has changed in the copy from look to look, while its parameters did. That matters only if the
copy is called, and the layers with these buffers are in eval mode: in train mode they have statistics of their own.
A copy that is not called, as an average that gets its statistics at the end, is not reported. One look is enough if the
statistics that the copy is called with are those of a new layer.
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
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_transforming

LEAST_LOOKS = 2  # in which the parameters had changed, and the buffers had not
MOST_EXTRA = 15  # looks because a copy, or a model that is new, has been called
_NEW = {"running_mean": 0.0, "running_var": 1.0}  # what all elements of a new layer's statistics are
MAX_ELEMENTS = 1 << 20  # of all buffers of a model; larger ones are not compared
MAX_PARAMETERS = 4
_Values: TypeAlias = dict[str, torch.Tensor]
_Signature: TypeAlias = tuple[int, tuple[tuple[str, torch.Size], ...], tuple[tuple[str, torch.Size], ...]]


@dataclass
class _Pair:
    """A model and its copy, and their values at the last look."""

    model: ReferenceType[nn.Module]
    copy: ReferenceType[nn.Module]
    buffers: _Values  # of the copy, at the first look
    sources: _Values  # of the model, at the first look
    parameters: _Values  # a few of the copy, at the last look
    used: set[str] = field(default_factory=set)  # buffers with which the copy was called
    num_looks: int = 0  # that found new parameters and old buffers
    has_moved: bool = False  # the buffers of the copy


class _Living(NamedTuple):
    model: nn.Module
    copy: nn.Module
    num_models: int  # that it may be a copy of


@dataclass
class LaggingBuffersLog:
    """Compares copies with their models, in some calls. NOTE [Lagging].

    They are those whose number is a power of two, and some of those before which a copy was called, as in an evaluation
    after each epoch, or a module that had not been called before.
    """

    recorder: Recorder
    gradients: GradientUse
    written: Callable[[torch.Tensor], Frame | None]  # the line of the last write to a tensor
    found: dict[int, LaggingBuffers] = field(default_factory=dict)  # by the id of the copy
    _pairs: dict[int, _Pair] = field(default_factory=dict)  # by the same
    _passed_over: dict[int, tuple[ReferenceType[nn.Module], _Values]] = field(default_factory=dict)  # not compared
    _num_calls: int = 0
    _num_extra: int = 0  # looks
    _num_windows: int = 0  # of the recorder, at the last call
    _called: set[int] = field(default_factory=set)  # modules by their numbers, since the last look
    _known: set[int] = field(default_factory=set)  # all that were called

    def begin(self) -> None:
        """Look at the models before a backward call."""
        self._num_calls += 1
        windows = self.recorder.module_windows[self._num_windows :]
        self._num_windows += len(windows)
        self._called.update(window.module for window in windows)
        if not self._is_due() or is_capturing() or is_transforming():
            return
        self._known |= self._called
        called = {id(module) for number in self._called if (module := self.recorder.modules[number]()) is not None}
        self._called.clear()
        reached = {id(tensor) for one in self.gradients.parameters() if (tensor := one.tensor()) is not None}
        with Unobserved():
            for key, pair in self._pairs.items():
                self._look(key, pair, called)
            for one in _copies(self.recorder.called_modules(), reached):
                why = _why_not_compared(one)
                if why is None:
                    self._remember(one, called)
                else:
                    self._pass_over(one.copy, why)

    def _is_due(self) -> bool:
        """Return whether to look now."""
        if self._num_calls.bit_count() == 1:
            return True
        if self._num_extra == MOST_EXTRA:
            return False
        called = (self.recorder.modules[number]() for number in self._called)
        is_news = not self._called <= self._known or any(id(module) in self._pairs for module in called)
        self._num_extra += is_news
        return is_news

    def _pass_over(self, copy: nn.Module, why: str) -> None:
        """Count what is not compared, once its parameters change: what is frozen follows nothing."""
        known, values = self._passed_over.get(id(copy), (None, {}))
        now = _few_parameters(copy)
        if known is None or known() is not copy:
            self._passed_over[id(copy)] = ref(copy), _copied(now)
        elif _changed(values, now):
            self._passed_over[id(copy)] = ref(copy), {}
            self.recorder.errors.pass_over("copy of a model, for its buffers", why)

    def _remember(self, one: _Living, called: Collection[int]) -> None:
        known = self._pairs.get(id(one.copy))
        if known is not None and known.copy() is one.copy:
            return
        buffers, sources = _copied(_buffers(one.copy)), _copied(_buffers(one.model))
        parameters = _copied(_few_parameters(one.copy))
        has_followed = bool(_changed(parameters, _few_parameters(one.model)))  # else it may be as it was made
        used = {name for name in buffers if has_followed and _is_used(one.copy, name, called)}
        self._pairs[id(one.copy)] = _Pair(ref(one.model), ref(one.copy), buffers, sources, parameters, used)

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
        pair.used.update(name for name in moving if _is_used(copy, name, called))
        used = [name for name in moving if name in pair.used]
        pair.num_looks += bool(is_followed and used)
        is_sure = pair.num_looks >= LEAST_LOOKS or (is_followed and _are_new(copy, used))
        if is_sure and used:
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
    return id(type(module)), parameters, tuple((name, tensor.shape) for name, tensor in buffers.items())


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
    is_dense = is_one_of(tensor, (torch.Tensor, nn.Parameter)) and tensor.layout is torch.strided
    return is_dense and why_unread(tensor) is None and ops.numel(tensor) > 0


def _copied(values: _Values) -> _Values:
    return {name: ops.clone(ops.detach(tensor)) for name, tensor in values.items()}


def _changed(before: _Values, now: _Values) -> list[str]:
    """List the names under which there are other values than before."""
    return [name for name, tensor in now.items() if name in before and not _is_equal(before[name], tensor)]


def _is_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.device == other.device and one.dtype is other.dtype and ops.equal(one, ops.detach(other))


def _are_new(copy: nn.Module, names: Sequence[str]) -> bool:
    """Return whether these buffers are statistics with the values of a new layer."""
    buffers = _buffers(copy)
    new = [(buffers[name], _NEW[kind]) for name in names if (kind := name.rpartition(".")[2]) in _NEW]
    return bool(new) and all(ops.item(ops.all(ops.eq(tensor, value))) for tensor, value in new)


def _is_used(copy: nn.Module, name: str, called: Collection[int]) -> bool:
    """Return whether the layer that has a buffer was called, and is in eval mode."""
    path, _, _ = name.rpartition(".")
    return any(one == path and id(layer) in called and not layer.training for one, layer in named_modules(copy))
