"""Leave our function modes out where a program counts, lists or takes a look at the modes on torch's stack.

Tests of torch do, to find modes that were left behind, and libraries do, to find their own. torch's own code, which
takes each mode off by its place, sees all of them. A mode of ours leaves before the program ends, so that a program
which counts before and after would otherwise find one less.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private

MODE_STACK = private("torch.overrides._get_current_function_mode_stack", "writes by hooks inside backward are not seen")
_all_modes: Callable[[], list[Any]] = MODE_STACK.or_else(list)
_OURS = f"{__name__.partition('.')[0]}."
_TORCH = "torch."
_TESTS = "torch.testing."


def unlisted_modes() -> tuple[Patch, ...]:
    """Patch the functions by which a program sees torch's stack of function modes."""
    return (
        Patch(torch._C, "_len_torch_function_stack", lambda original: _Unlisting(original, _length)),
        Patch(torch._C, "_get_function_stack_at", lambda original: _Unlisting(original, _at)),
        Patch(torch._C, "_is_torch_function_mode_enabled", lambda original: _Unlisting(original, _is_any_active)),
        Patch(torch.overrides, "_get_current_function_mode_stack", lambda original: _uncompiled(original, _stack)),
        Patch(torch.overrides, "_get_current_function_mode", lambda original: _uncompiled(original, _top)),
    )


class _Unlisting:
    """Stands in for a function of C++.

    It is equal to that function, because torch.compile knows what a program calls by looking it up.
    """

    def __init__(self, original: Any, see: Callable[..., Any]) -> None:
        self._original = original
        self._see = see

    def __call__(self, *args: Any) -> Any:
        if torch.compiler.is_compiling():  # must come first: torch.compile traces what follows, and guards on it
            return self._original(*args)
        return self._original(*args) if _sees_all_modes(sys._getframe(1)) else self._see(self._original, *args)

    def __eq__(self, other: object) -> bool:
        return other is self or bool(self._original == other)

    def __hash__(self) -> int:
        return hash(self._original)


def _uncompiled(original: Callable[[], Any], see: Callable[[Any], Any]) -> Callable[[], Any]:
    """Stand in for a function of Python, which torch.compile looks into."""

    def stand_in() -> Any:
        if torch.compiler.is_compiling():  # as above
            return original()
        return original() if _sees_all_modes(sys._getframe(1)) else see(original)

    return stand_in


def _sees_all_modes(caller: FrameType) -> bool:
    name = caller.f_globals.get("__name__")
    return type(name) is str and f"{name}.".startswith(_TORCH) and not name.startswith(_TESTS)


def _stack(_original: object = None) -> list[Any]:
    """Return the modes of the program on this thread."""
    return [mode for mode in _all_modes() if not str(type(mode).__module__).startswith(_OURS)]


def _top(_original: object) -> Any:
    return next(reversed(_stack()), None)


def _length(_original: object) -> int:
    return len(_stack())


def _at(original: Callable[[int], Any], place: int) -> Any:
    theirs = _stack()
    return theirs[place] if 0 <= place < len(theirs) else original(place)  # which says what is wrong


def _is_any_active(original: Callable[[], bool]) -> bool:
    return original() and bool(_stack())
