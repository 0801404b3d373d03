"""Keep torch.compile away from our functions.

Between the compiled parts of a function, torch.compile inspects each Python frame that runs, and compiles it too. Our
frame would be one more to compile and one more graph break, and it would observe the trace instead of the run. Traced
code also calls some of our functions, where this has no effect: those check `torch.compiler.is_compiling()` themselves.
"""

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.probes import private

_UNSEEN = "backward calls inside a function under torch.compile are not seen"
_SET = private("torch._C._dynamo.eval_frame.set_code_exec_strategy", _UNSEEN)
_STRATEGY = private("torch._C._dynamo.eval_frame._FrameExecStrategy", _UNSEEN)
_ACTION = private("torch._C._dynamo.eval_frame._FrameAction", _UNSEEN)
_NO_FILE = "<string>"
_CACHED = type(lru_cache(maxsize=1)(len))  # what is in the place of a function whose results are kept
_MARKED: set[int] = set()  # codes of functions, which are never freed
_PASSED_BY: set[int] = set()  # those of them that only hand on
_SKIPPED: "dict[int, _Skipped]" = {}  # by id: each recording begins with it, and all that is ours takes 65 ms
_CONVERSIONS = "torch._dynamo.convert_frame"  # never imported by us: a program that compiles has imported it
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Skipped(NamedTuple):
    """A module or class of ours whose functions are skipped."""

    owner: ModuleType | type  # kept, so that nothing else gets its id
    num_names: int
    inner: tuple[ModuleType | type, ...]  # that it names


def is_generated(code: CodeType) -> bool:
    """Return whether torch.compile has written this code, in which the call of a graph has the line of another call."""
    return code in getattr(sys.modules.get(_CONVERSIONS), "output_codes", ())


def passed_by(function: _Function) -> _Function:
    """Run a function uncompiled; what it calls belongs to the program, and is compiled as usual."""
    _PASSED_BY.add(id(function.__code__))
    return _marked(function, with_callees=False)


def is_passed_by(code: CodeType) -> bool:
    """Return whether a function is marked by `passed_by`: what it calls belongs to the program."""
    return id(code) in _PASSED_BY


def uncompiled(function: _Function) -> _Function:
    """Run a function uncompiled, with everything that it calls."""
    return _marked(function, with_callees=True)


def never_compiled(package: ModuleType) -> None:
    """Run every function of a package uncompiled, as `passed_by` does, unless it was said otherwise for one.

    Its modules are found as attributes of it: sys.modules may belong to the program. NOTE [Two sets of modules].
    """
    _skip_all(package, package.__name__, set())


def _skip_all(owner: ModuleType | type, package: str, seen: set[int]) -> None:
    seen.add(id(owner))
    skipped = _SKIPPED.get(id(owner))
    if skipped is None or skipped.num_names != len(vars(owner)):  # an import gives a package one name more
        skipped = _SKIPPED[id(owner)] = _Skipped(owner, len(vars(owner)), tuple(_skip_own(owner, package)))
    for inner in skipped.inner:
        if id(inner) not in seen:
            _skip_all(inner, package, seen)


def _skip_own(owner: ModuleType | type, package: str) -> Iterator[ModuleType | type]:
    """Skip the functions of a module or class, and yield the modules and classes of the package that it names."""
    for value in tuple(vars(owner).values()):
        kind = type(value)
        function = value.__func__ if is_one_of(value, (staticmethod, classmethod)) else value
        function = value.fget if kind is property else value.__wrapped__ if kind is _CACHED else function
        if type(function) is FunctionType:
            _skip_function(function, package, is_generated=issubclass(type(owner), type))
        elif issubclass(kind, type | ModuleType) and _is_in(package, _module_name(value)):
            yield value


def _module_name(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else owner.__module__


def _skip_function(function: FunctionType, package: str, *, is_generated: bool) -> None:
    """Skip a function of a package, with those that it makes; of one that a decorator wraps, that which is ours.

    A decorator of another package has one code for everything that it decorates, also for what is the program's. What
    Python writes for a class, such as the `__new__` of a NamedTuple, says of itself that it is in no file.
    """
    wrapped: Any = function
    while type(wrapped) is FunctionType:
        is_ours = _is_in(package, wrapped.__globals__.get("__name__"))
        if is_ours or (is_generated and wrapped.__code__.co_filename == _NO_FILE):
            _skip_codes(wrapped.__code__)
        wrapped = vars(wrapped).get("__wrapped__")


def _is_in(package: str, module: object) -> bool:
    return type(module) is str and module.partition(".")[0] == package


def _skip_codes(code: CodeType) -> None:
    """Skip a function, and those that it makes."""
    if id(code) not in _MARKED:
        _skip(code, with_callees=False)
    for constant in code.co_consts:
        if type(constant) is CodeType:
            _skip_codes(constant)


def _marked(function: _Function, *, with_callees: bool) -> _Function:
    _MARKED.add(id(function.__code__))
    _skip(function.__code__, with_callees=with_callees)
    return function


def _skip(code: CodeType, *, with_callees: bool) -> None:
    if _SET.is_there and _STRATEGY.is_there and _ACTION.is_there:
        skip, default = _ACTION.value.SKIP, _ACTION.value.DEFAULT
        _SET.value(code, _STRATEGY.value(skip, skip if with_callees else default))
