"""Find what stood in a place of torch before the program replaced it.

NOTE [Replaced functions]
A program may put a wrapper around `torch.Tensor.backward`, or any other function of torch. Where a function mode is
active, a function of torch does not continue: it looks itself up by its name, and hands what it finds to the mode. That
is the wrapper, which has just called it, so a mode that calls what it is given runs the wrapper twice. A mode that is
not the program's must call the function that asked instead. A function written in Python is that of the frame which
asked; one written in C has no frame, but it cannot be replaced where it was defined, on the base class.
Source: torch/overrides.py, torch/_tensor.py, torch/csrc/utils/python_arg_parser.cpp, torch 2.13.
"""

from collections.abc import Iterator, Mapping
from gc import get_referents
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import torch
from torch import nn

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.modes import HANDLE_TORCH_FUNCTION
from gradinspect.torch_api.operators import OPERATORS
from gradinspect.torch_api.patching.classes import identities, is_one_of
from gradinspect.torch_api.probes import private

_NO_BASE = "what a program puts in the place of a method of tensors may be called twice"
_BASE = private("torch._C.TensorBase", _NO_BASE)
_NAMES = ("_nn", "_fft", "_linalg", "_special", "_sparse", "_nested")
_PARTS = tuple(private(f"torch._C.{name}", "what a program puts there may be called twice") for name in _NAMES)
_CHECKS = frozenset(("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"))
_FAR = 200  # objects
NEVER_REPLACED = identities(BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, *OPERATORS)


class Standing(NamedTuple):
    """What a mode has to do with a function that it was given."""

    called: Any  # what to call: the function that asked
    func: Any  # the function of torch that this is, always the same object


@uncompiled
def standing_for(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, caller: FrameType) -> Standing | None:
    """Find the function that asked a mode; None if it is what the mode was given.

    Args:
        func: What the mode was given, if it is not of a kind that is `NEVER_REPLACED`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        caller: The frame that called the mode.
    """
    kind = type(func)
    asking = caller.f_back if caller.f_code is HANDLE_TORCH_FUNCTION else None
    if kind is FunctionType and asking is not None and func.__code__ is asking.f_code:  # nearly always
        return None
    if id(kind) in NEVER_REPLACED or (kind is MethodWrapperType and type(func.__self__) is GetSetDescriptorType):
        return None
    if asking is None:
        original = _behind_name(func)
        return None if original is None else Standing(original, original)
    if asking.f_back is not None and _CHECKS.isdisjoint(asking.f_code.co_names):  # it only hands on what it is given
        asking = asking.f_back
    is_checking = not _CHECKS.isdisjoint(asking.f_code.co_names)
    known = (_KNOWN.get(id(asking.f_code)) or _rebuilt(asking)) if is_checking else None
    if known is None or known.__code__ is _code_of(func) or not _takes(known.__code__, args, kwargs or {}):
        return None
    return Standing(known, func if _is_of_torch(func) else _shown(known))


@uncompiled
def asking(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, caller: FrameType) -> Standing:
    """Find the function that asked a mode, also if it is what the mode was given."""
    return standing_for(func, args, kwargs, caller) or Standing(func, func)


def _code_of(func: Any) -> CodeType | None:
    function = func.__func__ if type(func) is MethodType else func
    return function.__code__ if type(function) is FunctionType else None


def _is_of_torch(func: Any) -> bool:
    """Return whether torch itself defines a function, such as the one that chooses between two kinds of pooling."""
    return type(func) is FunctionType and str(func.__globals__.get("__name__")).partition(".")[0] == "torch"


def _rebuilt(frame: FrameType) -> FunctionType | None:
    """Make a function again from a frame that runs it; a default is the value that the parameter has there."""
    code, values = frame.f_code, frame.f_locals
    try:
        positional = tuple(values[name] for name in code.co_varnames[: code.co_argcount])
        cells = tuple(CellType(values[name]) for name in code.co_freevars)
    except KeyError:  # deleted meanwhile
        return None
    function = FunctionType(code, frame.f_globals, code.co_name, positional, cells)
    only_keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    function.__kwdefaults__ = {name: values[name] for name in only_keywords if name in values}
    return function


def _takes(code: CodeType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function takes these arguments."""
    has_rest, has_keywords = code.co_flags & 0x04, code.co_flags & 0x08  # CO_VARARGS, CO_VARKEYWORDS
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    by_keyword = frozenset(names[min(len(args), code.co_argcount) :])
    return (bool(has_rest) or len(args) <= code.co_argcount) and (bool(has_keywords) or by_keyword.issuperset(kwargs))


def _shown(function: FunctionType) -> FunctionType:
    """Return one function for each code: those made from a frame hold what they are called with."""
    code = function.__code__
    if id(code) in _KNOWN:
        return function
    if id(code) not in _SHOWN:
        cells = tuple(CellType() for _ in code.co_freevars)
        _SHOWN[id(code)] = FunctionType(code, function.__globals__, code.co_name, None, cells)
    return _SHOWN[id(code)]


def _behind_name(func: Any) -> Any:
    """Find the C function that has just found this one under its own name; None if it is not certain which."""
    accessed = func.__name__ if type(func) is MethodWrapperType else None  # __get__ or __set__ of an attribute
    value = func if accessed is None else func.__self__
    replaced = tuple(_replaced())
    found = [name for name in replaced if name.value is value or _function_in(name.value) is value]
    if not found:  # an object that makes another at each access
        found = [name for name in replaced if not _is_of_torch(name.value)]
        if len(found) > 1:
            named, held = _name_of(value), _held_by(value)
            held_ones = [name for name in found if id(name.original) in held]
            found = held_ones or [name for name in found if name.name == named]
    found = [name for name in found if not name.name.startswith("__")] or found  # C looks for abs, not for __abs__
    if len(found) != 1:
        return None
    return found[0].original if accessed is None else getattr(found[0].original, accessed, None)


class _Replaced(NamedTuple):
    name: str
    value: Any  # what is there now
    original: Any


def _replaced() -> Iterator[_Replaced]:
    """List what now stands where C functions look themselves up."""
    for current, originals in _PLACES:
        for name in originals.keys() & current.keys():
            if current[name] is not originals[name]:
                yield _Replaced(name, current[name], originals[name])


def _held_by(value: Any) -> set[int]:
    """Identify what a wrapper refers to, as far as a few steps lead; none of its code is run."""
    seen: dict[int, Any] = {id(value): value}
    todo = [value]
    while todo and len(seen) < _FAR:
        item = todo.pop(0)
        if issubclass(type(item), type | ModuleType):
            continue
        if type(item) is FunctionType:  # without its globals, which are all of a module
            around = [item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__]
        else:
            around = get_referents(item)
        new = {id(one): one for one in around if one is not None and id(one) not in seen}
        seen.update(new)
        todo += new.values()
    return set(seen)


def _function_in(value: Any) -> Any:
    return value.__func__ if is_one_of(value, (staticmethod, classmethod)) else None


def _name_of(value: Any) -> str | None:
    try:
        name = value.__name__
    except Exception:  # an object of the program may do anything
        return None
    return name if type(name) is str else None


def _places() -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """List where C functions look themselves up: what is there, and what torch has put there."""
    if _BASE.is_there:
        yield vars(torch.Tensor), {name: value for name, value in vars(_BASE.value).items() if name != "__doc__"}
    for part in _PARTS:
        if part.is_there:
            names = vars(part.value)
            yield names, {name: value for name, value in names.items() if type(value) is BuiltinFunctionType}


def _functions() -> Iterator[FunctionType]:
    """List the functions of torch that ask modes and are not made by another function."""
    for holder in (torch.Tensor, torch, torch.functional, torch.autograd, nn.functional, nn.init, torch.amp):
        for value in vars(holder).values():
            if type(value) is FunctionType and not value.__code__.co_freevars:
                yield value


_PLACES = tuple(_places())
_KNOWN = {id(function.__code__): function for function in _functions()}
_SHOWN: dict[int, FunctionType] = {}  # those that were replaced before this module was imported, or are not of torch
