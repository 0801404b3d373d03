"""Functions that a loop makes, one for each round, and that all read what its variable is when they are called.

NOTE [Variables of a loop]
`[lambda x: x * ws[i] for i in range(n)]` makes n functions that look `i` up when they run: each then uses the last
parameter, and the others get no gradient. So where parameters have none, it is looked for a list, tuple or dict of
several functions that one line has made in a loop, that read its variable, and that share it. Hooks are made alike: so
what they read has to lead to the parameters, or to something of the same kind.
"""

import ast
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import torch
from torch import nn

from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.names.variables import elements_of, isinstance_safely, namespaces_from
from gradinspect.recording.source_structure import enclosing
from gradinspect.torch_api.patching.classes import is_one_of

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_HOLDERS = (nn.ParameterList, nn.ParameterDict)


class LateFunctions(NamedTuple):
    """Several functions of one line, which read a variable of the loop that made them."""

    code: CodeType
    variable: str
    num_functions: int
    values: tuple[Any, ...]  # of what they read

    def leads_to(self, parameter: torch.Tensor) -> bool:
        """Return whether a parameter is among what they read, or is like it."""
        return any(_leads_to(value, parameter) for value in self.values)


def late_functions(frame: FrameType | None, modules: Sequence[nn.Module]) -> Iterator[LateFunctions]:
    """Yield those in containers that are visible from a frame, or that are attributes of modules."""
    spaces = namespaces_from(frame)
    named = {id(part): part for root in _modules(spaces, modules) for _, part in named_modules(root)}
    spaces += [object.__getattribute__(part, "__dict__") for part in named.values()]
    seen: set[int] = set()
    for space in spaces:
        for value in list(space.values()):
            if is_one_of(value, (list, tuple, dict)) and id(value) not in seen:
                seen.add(id(value))
                yield from _late(elements_of(value))


def _modules(spaces: Sequence[dict[str, object]], others: Sequence[nn.Module]) -> Iterator[Any]:
    yield from (one for space in spaces for one in list(space.values()) if isinstance_safely(one, (nn.Module,)))
    yield from others


def _late(elements: Sequence[Any]) -> Iterator[LateFunctions]:
    by_code: dict[int, list[FunctionType]] = {}
    for one in elements:
        if type(one) is FunctionType and is_own_file(one.__code__.co_filename):
            by_code.setdefault(id(one.__code__), []).append(one)
    for functions in by_code.values():
        first = functions[0]
        if len(functions) > 1 and all(_reads_same(first, one) for one in functions):
            variable = _loop_variable(first.__code__)
            if variable is not None:
                yield LateFunctions(first.__code__, variable, len(functions), tuple(_read(first)))


def _reads_same(one: FunctionType, other: FunctionType) -> bool:
    """Return whether two functions share all variables, and have no defaults that could tell them apart."""
    cells, others = one.__closure__ or (), other.__closure__ or ()
    is_plain = not (one.__defaults__ or one.__kwdefaults__)
    return is_plain and len(cells) == len(others) and all(a is b for a, b in zip(cells, others, strict=True))


def _read(function: FunctionType) -> Iterator[Any]:
    """Yield what the variables of a function are now."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    names = (name for name in function.__code__.co_names if name in function.__globals__)
    yield from (function.__globals__[name] for name in names)


def _loop_variable(code: CodeType) -> str | None:
    """Return a variable that a function reads, and that a loop around it assigns."""
    around = enclosing(code.co_filename, code.co_firstlineno)
    read = {*code.co_freevars, *code.co_names}
    for node in around:
        for target in _targets(node):
            names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
            found = next((name for name in names if name in read), None)
            if found is not None:
                return found
    return None


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.For):
        return [node.target]
    return [part.target for part in node.generators] if isinstance(node, _COMPREHENSIONS) else []


def _leads_to(value: Any, parameter: torch.Tensor) -> bool:
    if isinstance_safely(value, (torch.Tensor,)):
        return bool(value.requires_grad and value.shape == parameter.shape)
    if isinstance_safely(value, _HOLDERS):
        return any(one is parameter for one in all_parameters(value))
    if isinstance_safely(value, (nn.Module,)):
        return any(one is parameter or one.shape == parameter.shape for one in all_parameters(value))
    return any(
        one is parameter or (isinstance_safely(one, (nn.Module,)) and any(p is parameter for p in all_parameters(one)))
        for one in elements_of(value)
    )
