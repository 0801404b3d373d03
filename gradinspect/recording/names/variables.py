"""The variables of live frames: the user's names of tensors and modules.

NOTE [Locals of a running function]
Before Python 3.13 `frame.f_locals` of a function is a dict that the frame keeps and `locals()` returns. Reading it
would keep the user's tensors alive, and change the result of an earlier `locals()`. So a function that may have called
`locals()` is skipped, and the dict is cleared again if nothing else holds it.
"""

import inspect
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dis import get_instructions
from functools import lru_cache
from inspect import getattr_static
from itertools import islice
from sys import getrefcount
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from gradinspect.recording.frames import user_frames
from gradinspect.torch_api.patching.classes import is_one_of

LARGEST_CONTAINER = 1_000  # elements read of one list or dict
_OF_DYNAMO = "___"  # what a function that goes on after a graph break is given: ___stack0
_CONTAINERS = (list, tuple, set, frozenset)
_BEFORE_TARGETS = frozenset(("FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "EXTENDED_ARG", "NOP"))
_ASKS_FOR_LOCALS = frozenset(("locals", "vars", "dir", "eval", "exec"))
_READS_NAME = frozenset(("LOAD_GLOBAL", "LOAD_NAME"))  # unlike an attribute
_SEEN: dict[int, tuple[CodeType, bool]] = {}  # by the id of a function's code that has such a name
_ASSERTS_OF_PYTEST = "@py_builtins"  # it adds calls of locals() to each assert, and keeps nothing of them
_EMPTY_REFERENCES = getrefcount(dict(a=1)) + 2  # the frame's own and the variable's  # noqa: C408


class Variable(NamedTuple):
    """A tensor or module and the user's name for it."""

    name: str
    value: torch.Tensor | nn.Module


def variables_from(frame: FrameType | None, *, outermost_first: bool = False) -> Iterator[Variable]:
    """Yield the tensors and modules visible in the user's frames, and in their globals.

    Args:
        frame: The innermost frame.
        outermost_first: Start with the globals, whose names are the same at every call; else with the innermost frame.
    """
    frames = list(user_frames(frame))
    globals_of = {id(user.f_globals): user for user in reversed(frames)}  # the innermost frame of each module
    order = [*((user, False) for user in frames), *((user, True) for user in reversed(globals_of.values()))]
    for user, is_global in reversed(order) if outermost_first else order:
        if not is_global:
            yield from variables_in(_named_locals(user), loop_targets(user.f_code))
        else:
            codes = [one.f_code for one in frames if _is_of_module(one) and one.f_globals is user.f_globals]
            yield from variables_in(user.f_globals, frozenset[str]().union(*map(loop_targets, codes)))


def namespaces_from(frame: FrameType | None) -> list[dict[str, object]]:
    """List the local variables of the user's frames, from this one outward, and then the globals of each once."""
    frames = list(user_frames(frame))
    return [*map(local_variables, frames), *{id(user.f_globals): user.f_globals for user in frames}.values()]


def named_model(model: nn.Module | None, frame: FrameType | None) -> tuple[Variable, ...]:
    """Name a model after a variable that is visible in the user's frames, or else `model`; nothing without a model."""
    if model is None:
        return ()
    names = (name for name, value in variables_from(frame) if value is model)
    return (Variable(next(names, "model"), model),)


@lru_cache(maxsize=256)
def loop_targets(code: CodeType) -> frozenset[str]:
    """Return the variables that for loops assign: they name another object in each iteration."""
    names: set[str] = set()
    is_target = False
    for instruction in get_instructions(code):
        if instruction.opname == "FOR_ITER":
            is_target = True
        elif is_target and instruction.opname.startswith("STORE_"):
            stored = instruction.argval
            names.update(stored if isinstance(stored, tuple) else (stored,))
            is_target = "LOAD" not in instruction.opname
        elif instruction.opname not in _BEFORE_TARGETS:
            is_target = False
    return frozenset(names)


def _named_locals(frame: FrameType) -> dict[str, object]:
    """Copy a frame's locals; for a lambda, those of the enclosing functions, because its arguments are not names."""
    variables = local_variables(frame)
    if frame.f_code.co_name != "<lambda>":
        return variables
    return {name: value for name, value in variables.items() if name in frame.f_code.co_freevars}


def variables_in(namespace: dict[str, object], passing: Collection[str] = ()) -> Iterator[Variable]:
    """Yield the tensors and modules of one namespace: direct ones first, then those in containers and `self`.

    Args:
        namespace: Locals or globals.
        passing: Variables that come last: a container has a better name for what is in them.
    """
    inside: list[Variable] = []
    last: list[Variable] = []
    for name, value in list(namespace.items()):
        if type(name) is str and name.startswith(_OF_DYNAMO):
            continue
        if isinstance_safely(value, (torch.Tensor, nn.Module)):
            variable = Variable(name, cast("torch.Tensor | nn.Module", value))
            if name in passing:
                last.append(variable)
            else:
                yield variable
        elif is_one_of(value, (list, tuple, dict)):
            inside.extend(_elements(name, value))
        elif name == "self":
            inside.extend(_attributes(name, value))
        elif isinstance_safely(value, (tuple,)):
            inside.extend(_fields(name, cast("tuple[object, ...]", value)))
    yield from inside
    yield from last


def _fields(name: str, value: tuple[object, ...]) -> Iterator[Variable]:
    """Yield what a named tuple holds, without running code of its class."""
    fields = getattr_static(type(value), "_fields", ())
    if is_one_of(fields, (tuple,)) and all(type(one) is str for one in fields):
        for field, one in zip(fields, tuple.__iter__(value), strict=False):
            if isinstance_safely(one, (torch.Tensor, nn.Module)):
                yield Variable(f"{name}.{field}", cast("torch.Tensor | nn.Module", one))


def num_unlisted(namespace: dict[str, object]) -> int:
    """Count the modules, and the tensors that require grad, that are too far back in a list or dict to get a name.

    Only containers whose last element is one of them are walked through, not a long list of examples.
    """
    found = 0
    for value in [*namespace.values(), *own_attributes(namespace.get("self")).values()]:
        if is_one_of(value, (list, tuple, dict)) and len(cast("Sequence[object]", value)) > LARGEST_CONTAINER:
            in_order = value.values() if isinstance(value, dict) else cast("Sequence[object]", value)
            if _learns(next(reversed(cast("Sequence[object]", in_order)))):
                found += sum(map(_learns, elements_of(value)[LARGEST_CONTAINER:]))
    return found


def _learns(value: object) -> bool:
    is_trained = isinstance_safely(value, (torch.Tensor,)) and cast("torch.Tensor", value).requires_grad
    return is_trained or isinstance_safely(value, (nn.Module,))


def isinstance_safely(value: object, kinds: tuple[type, ...]) -> bool:
    """Check the type without accessing `__class__`, which may run user code."""
    return issubclass(type(value), kinds)


def elements_of(value: object) -> list[Any]:
    """List what a list, tuple, set or dict holds, without running code of a subclass; [] for other objects."""
    kind = type(value)
    if kind is dict:
        return list(cast("dict[Any, Any]", value).values())
    if not issubclass(kind, _CONTAINERS):
        return []
    base: Any = next(base for base in _CONTAINERS if issubclass(kind, base))
    return list(base.__iter__(value))


def local_variables(frame: FrameType) -> dict[str, object]:
    """Copy a frame's locals; empty for a frame that must be skipped. NOTE [Locals of a running function]."""
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return {} if _is_of_module(frame) else dict(frame.f_locals)
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if _may_see_snapshot(frame.f_code):
        return {}
    snapshot = frame.f_locals
    variables = dict(snapshot)
    if getrefcount(snapshot) <= _EMPTY_REFERENCES:
        snapshot.clear()
    return variables


def _may_see_snapshot(code: CodeType) -> bool:
    """Return whether a function calls `locals()` or the like, and not only a method of that name: `model.eval()`."""
    names = code.co_names
    if not _ASKS_FOR_LOCALS.intersection(names) or _ASSERTS_OF_PYTEST in names:
        return False
    known = _SEEN.get(id(code))
    if known is None or known[0] is not code:
        asking = (one for one in get_instructions(code) if one.argval in _ASKS_FOR_LOCALS)
        asks = any(one.opname in _READS_NAME or one.argval != "eval" for one in asking)
        known = _SEEN[id(code)] = code, asks
    return known[1]


def own_variables(frame: FrameType) -> dict[str, Any]:
    """Return the variables that a frame assigns: a copy of a function's locals, or a module's globals."""
    return frame.f_globals if _is_of_module(frame) else local_variables(frame)


def _is_of_module(frame: FrameType) -> bool:
    """Return whether a frame's locals are the globals, without making a dict of a function's locals."""
    return not frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_locals is frame.f_globals


def _elements(name: str, container: object) -> Iterator[Variable]:
    """Yield the elements of a list, tuple or dict, up to LARGEST_CONTAINER."""
    labeled: Iterable[tuple[str, object]]
    if isinstance(container, dict):
        first = islice(container.items(), LARGEST_CONTAINER)
        labeled = [(f"{name}[{key!r}]", value) for key, value in first if is_one_of(key, (str, int))]
    else:
        first_items = islice(cast("Sequence[object]", container), LARGEST_CONTAINER)
        labeled = [(f"{name}[{index}]", value) for index, value in enumerate(first_items)]
    for label, value in labeled:
        if isinstance_safely(value, (torch.Tensor, nn.Module)):
            yield Variable(label, value)


def _attributes(name: str, instance: object) -> Iterator[Variable]:
    """Yield the attributes of an object without running its code."""
    for attribute, value in list(islice(own_attributes(instance).items(), LARGEST_CONTAINER)):
        if isinstance_safely(value, (torch.Tensor, nn.Module)):
            yield Variable(f"{name}.{attribute}", value)
        elif is_one_of(value, (list, tuple, dict)):
            yield from _elements(f"{name}.{attribute}", value)


def own_attributes(instance: object) -> dict[str, object]:
    """Return the attributes of an object without running its code."""
    try:
        return cast("dict[str, object]", object.__getattribute__(instance, "__dict__"))
    except AttributeError:
        return {}
