"""What a module's forward may go on with that no operator shows: numbers, lists, iterators, generators of numbers.

It is looked for in the module, in its class, and in the variables that its forward and the program's own functions
around it name. Of tensors only the number is noted: operators show which ones a forward is given.
"""

import random
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dis import get_instructions
from inspect import getattr_static
from itertools import count, islice
from operator import length_hint
from types import CodeType, FunctionType, GeneratorType, ModuleType
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from gradinspect.recording.frames import is_own_file, line_name
from gradinspect.recording.names.variables import isinstance_safely, own_attributes
from gradinspect.torch_api.patching.classes import is_one_of

_getstate = random.Random.getstate
_DICTS = (dict, OrderedDict, defaultdict, Counter)
_SEQUENCES = (list, tuple, set, frozenset, deque)
_SIMPLE = (int, float, complex, bool, str, bytes, type(None))
_ITERATED: tuple[Any, ...] = ([], (), {}, {}.values(), {}.items(), range(1))
_ITERATORS = tuple(type(iter(one)) for one in _ITERATED)
_MOST_VALUES = 1_000  # that are looked at for one module
_MOST_NESTED = 4
_OF_TORCH = frozenset(vars(nn.Module()))


class Carried(NamedTuple):
    """What the next call of a forward may read."""

    name: str
    label: str  # "'calls' of Block", "the global variable 'CACHE'"


def carried_state(module: nn.Module) -> dict[Carried, object]:
    """Note everything."""
    kind = type(module).__name__
    left = iter(range(_MOST_VALUES))
    found = {
        Carried(key, f"'{key}' of {kind}"): _noted(value, left)
        for key, value in list(vars(module).items())
        if key not in _OF_TORCH
    }
    for function in _functions_of(module):
        for name, label, value in _variables_of(function, module):
            if label and type(value) is not FunctionType:
                found[Carried(name, label)] = _noted(value, left)
    return found


def line_that_changes(module: nn.Module, name: str) -> str:
    """Name the line of a module's forward that writes to something, or else one that reads it: "model.py:12"."""
    lines = [
        (not instruction.opname.startswith("STORE"), line_name(code.co_filename, instruction.positions.lineno))
        for function in _functions_of(module)
        for code in _codes_in(function.__code__)
        for instruction in get_instructions(code)
        if instruction.argval == name and instruction.positions and instruction.positions.lineno
    ]
    return min(lines, key=lambda line: line[0], default=(True, ""))[1]


def _functions_of(module: nn.Module) -> Iterator[FunctionType]:
    """Yield the program's own functions that a forward runs, as far as their names say."""
    waiting = [getattr_static(type(module), "forward", None)]
    seen = set[int]()
    while waiting:
        function = waiting.pop()
        if type(function) is not FunctionType or id(function.__code__) in seen:
            continue
        seen.add(id(function.__code__))
        if is_own_file(function.__code__.co_filename):
            yield function
            waiting += [value for _, _, value in _variables_of(function, module)]


def _variables_of(function: FunctionType, owner: nn.Module) -> Iterator[tuple[str, str, object]]:
    """Yield what a function names outside of itself, by name and label; methods are of `owner`, without a label."""
    kind, own = type(owner), vars(owner)
    names = tuple(dict.fromkeys(_names_in(function.__code__)))
    around = [
        (name, f"the global variable '{name}'", function.__globals__[name])
        for name in names
        if name in function.__globals__
    ]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            around.append((name, f"the variable '{name}' of a function around it", cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    for name, label, value in around:
        if issubclass(type(value), type):
            yield from _of_class(cast("type", value), names)
        else:
            yield name, label, value
    for name in names:
        yield name, "", own[name] if name in own else getattr_static(kind, name, None)
    yield from _of_class(kind, names)


def _names_in(code: CodeType) -> Iterator[str]:
    for one in _codes_in(code):
        yield from one.co_names


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _codes_in(constant)


def _of_class(kind: type, names: Iterable[str]) -> Iterator[tuple[str, str, object]]:
    """Yield the values that are not functions, of one class of the program."""
    for name in names:
        value = type.__getattribute__(kind, "__dict__").get(name)
        if value is not None and not isinstance_safely(value, (FunctionType, property, classmethod, staticmethod)):
            yield name, f"'{name}' of the class {kind.__name__}", value


def _noted(value: object, left: Iterator[int], nested: int = 0) -> object:
    """Note a value such that it differs when it has changed."""
    if is_one_of(value, _SIMPLE):
        return value if value == value else "nan"  # noqa: PLR0124  # which is no other number
    if isinstance_safely(value, (torch.Tensor,)) or next(left, None) is None or nested == _MOST_NESTED:
        return None  # as before the first tensor is there
    if is_one_of(value, (*_DICTS, *_SEQUENCES)):
        return _of_container(value, left, nested)
    return _of_generator(value, left, nested) if _is_plain(type(value)) else type(value).__name__


def _of_container(value: Any, left: Iterator[int], nested: int) -> object:
    elements = value.values() if is_one_of(value, _DICTS) else value
    return len(value), [_noted(one, left, nested + 1) for one in islice(elements, _MOST_VALUES)]


def _of_generator(value: Any, left: Iterator[int], nested: int) -> object:
    """Note how far something is that gives one value after the other, or what an object of the program holds."""
    if type(value) is random.Random:
        return _getstate(value)
    if type(value) is count:
        return repr(value)
    if is_one_of(value, _ITERATORS):
        return length_hint(value)
    if type(value) is GeneratorType:
        return None if value.gi_frame is None else value.gi_frame.f_lasti
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None and type(value) is numpy_random.Generator:
        return repr(value.bit_generator.state)
    members = own_attributes(value)
    return _of_container(dict(members), left, nested) if type(members) is dict and members else type(value).__name__


def _is_plain(kind: type) -> bool:
    return not issubclass(kind, (torch.Tensor, nn.Module, torch.optim.Optimizer, type, FunctionType, ModuleType))
