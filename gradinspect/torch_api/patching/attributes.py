"""Read attributes of torch's classes past what a program has put in their places.

NOTE [Attributes that a program replaces]
A program may put a property over `Tensor.shape`, `Module.training` or `Optimizer.param_groups`, to count who reads it.
Our reads must not be among them, and there are hundreds of places that read; so each property of that kind is covered
by one of ours while we record. It answers code of ours from where torch keeps the attribute, and everybody else by the
program's property. Nothing is covered where nothing was replaced. What is new in a class is noticed by the number of
its names, which costs an operator no call of Python. The program's own subclasses of tensors and optimizers are looked
at as well, before each outermost module call and each backward call. A `__getattribute__` of theirs is covered too.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from types import FrameType, FunctionType, GetSetDescriptorType
from typing import Any

import torch
from torch import nn

from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import private

_OURS = __name__.partition(".")[0]
_BASE = private("torch._C.TensorBase", "a property in the place of an attribute of tensors is read by us too")
_READ = "__getattribute__"
_read: Callable[[Any, str], Any] = object.__getattribute__
_names: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__  # whatever a metaclass answers
_module: Callable[[type], object] = type.__dict__["__module__"].__get__
_FOR_CALLERS = ("torch.nn.parameter", "torch.utils.weak")  # what they read is asked by isinstance, or a reference
_MISSING = object()
_OF_TORCH = "torch."  # its own subclasses mean what they say: `UninitializedParameter.shape` raises

TENSOR_NAMES: Mapping[str, Any] = vars(torch.Tensor)


def _of_instance(name: str) -> Callable[[Any], Any]:
    return lambda holder: _read(holder, "__dict__").get(name, _MISSING)


def _originals() -> dict[type, dict[str, Callable[[Any], Any]]]:
    base: Mapping[str, Any] = vars(_BASE.value) if _BASE.is_there else {}
    of_tensors: dict[str, Callable[[Any], Any]] = {
        name: value.__get__ for name, value in base.items() if type(value) is GetSetDescriptorType
    }
    return {
        torch.Tensor: of_tensors,
        nn.Module: {"training": _of_instance("training")},
        torch.optim.Optimizer: {name: _of_instance(name) for name in ("param_groups", "state", "defaults")},
    }


_ORIGINALS = _originals()


class CoveredAttributes:
    """Covers the properties that a program puts into torch's classes."""

    def __init__(self) -> None:
        """Cover nothing."""
        self.num_seen = 0  # names of tensors when it was last looked
        self._patches = ExitStack()

    def look(self) -> None:
        """Cover what is new, unless another recording has."""
        for root, originals in _ORIGINALS.items():
            for holder in (root, *_subclasses(root)):
                names = _names(holder)
                for name in originals.keys() & names.keys():
                    if type(names[name]) is not _Cover and hasattr(type(names[name]), "__set__"):
                        self._patches.enter_context(patched(Patch(holder, name, partial(_cover, originals[name]))))
                if type(names.get(_READ)) is FunctionType and names[_READ].__module__ != __name__:
                    self._patches.enter_context(patched(Patch(holder, _READ, _cover_reads)))
        self.num_seen = len(TENSOR_NAMES)

    def close(self) -> None:
        """Leave the program's properties alone."""
        self._patches.close()


def _subclasses(root: type) -> Iterator[type]:
    """List a program's own subclasses of tensors or optimizers; of modules there are hundreds."""
    if root is nn.Module:
        return
    derived: type
    for derived in type.__subclasses__(root):
        if not str(_module(derived)).startswith(_OF_TORCH):
            yield derived
        yield from _subclasses(derived)


class _Cover(property):
    theirs: Any


def _cover(read: Callable[[Any], Any], value: Any) -> _Cover:
    """Make a property that answers us from where torch keeps an attribute, and everybody else by the program's."""
    theirs = value.theirs if type(value) is _Cover else value

    def get(holder: Any) -> Any:
        if _is_ours(sys._getframe(1)):
            found = read(holder)
            if found is not _MISSING:
                return found
        try:
            return theirs.__get__(holder, type(holder))
        except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recording.recorder`
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    cover = _Cover(get, theirs.__set__, getattr(theirs, "__delete__", None), theirs.__doc__)
    cover.theirs = theirs
    return cover


def _cover_reads(theirs: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Make a `__getattribute__` that reads for us as Python does, and for everybody else by the program's."""

    def __getattribute__(holder: Any, name: str) -> Any:  # noqa: N807  # it is one
        if _is_ours(sys._getframe(1)):
            try:
                return _read(holder, name)
            except AttributeError:
                pass
        try:
            return theirs(holder, name)
        except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recording.recorder`
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    return __getattribute__


def _is_ours(frame: FrameType) -> bool:
    if frame.f_globals.get("__name__") in _FOR_CALLERS and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0] == _OURS
