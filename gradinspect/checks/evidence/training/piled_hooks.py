"""Hooks that are registered again and again, and never removed: each iteration adds one to the same tensor or module.

NOTE [Hooks that pile up]
Hooks of the same code on the same object are counted whenever backward is called. A library that removes what it has
registered leaves the number as it was; two increases, and no decrease, are a pile. Nothing is counted if no hook was
made since the last call. The registration was not seen, so its line is searched for: the call that is given the hook's
name, the call around a lambda, or else the hook itself.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import CodeType
from typing import Any, NamedTuple
from weakref import ReferenceType

import torch
from torch import nn

from gradinspect.checks.facts.training import HookKind
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import named_modules
from gradinspect.recording.source_structure import calls_of, own_sources
from gradinspect.torch_api.hooks import module_hooks, num_hooks_made, tensor_hooks
from gradinspect.torch_api.weak import HiddenRef

LEAST_GROWTHS = 2
MOST_CALLS_BETWEEN = 3  # as in an iteration with several backward calls
REGISTRATIONS: dict[HookKind, tuple[str, ...]] = {
    "tensor": ("register_hook",),
    "accumulated": ("register_post_accumulate_grad_hook",),
    "forward": ("register_forward_hook", "register_forward_pre_hook"),
    "backward": ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"),
}


class HookLine(NamedTuple):
    """The line that registers a hook."""

    file: str
    line: int


@dataclass
class Pile:
    """The hooks of one code on one tensor or module."""

    owner: ReferenceType[Any]
    name: str
    kind: HookKind
    code: CodeType | None
    hook: str  # its qualified name
    count: int = 0
    num_growths: int = 0
    grown_at: int = 0  # the last call that found more
    backward: int | None = None


@dataclass
class PiledHooks:
    """Counts hooks. The log calls it with what it sees."""

    _piles: dict[tuple[int, str, object], Pile] = field(default_factory=dict)
    _num_made: int | None = None
    _num_calls: int = 0

    def begin(
        self, leaves: Sequence[tuple[torch.Tensor, str]], roots: Sequence[nn.Module], backward: int | None
    ) -> None:
        """Count the hooks on what backward reaches, and on the modules of models that were called."""
        self._num_calls += 1
        num_made = num_hooks_made()
        if num_made is not None and num_made == self._num_made:
            return
        self._num_made = num_made
        for leaf, name in leaves:
            on_tensor, after_grad = tensor_hooks(leaf)
            self._count(leaf, name or "a tensor", "tensor", on_tensor.values(), backward)
            self._count(leaf, name or "a tensor", "accumulated", after_grad.values(), backward)
        for root in roots:
            for path, module in named_modules(root):
                on_forward, on_backward = module_hooks(module)
                self._count(module, path or type(module).__name__, "forward", on_forward, backward)
                self._count(module, path or type(module).__name__, "backward", on_backward, backward)

    def waits(self) -> str | None:
        """Name hooks of which there may be more at the next call."""
        recent = self._num_calls - MOST_CALLS_BETWEEN
        growing = (pile for pile in self._piles.values() if 0 < pile.num_growths < LEAST_GROWTHS)
        one = next((pile for pile in growing if pile.grown_at > recent), None)
        return None if one is None else f"{one.name} had been given one more hook"

    def found(self) -> list[Pile]:
        """List the piles."""
        return [pile for pile in self._piles.values() if pile.num_growths >= LEAST_GROWTHS]

    def _count(self, owner: Any, name: str, kind: HookKind, hooks: Any, backward: int | None) -> None:
        if not hooks:
            return
        functions = {_key_of(function): function for function in map(_function, hooks)}
        for key, count in Counter(_key_of(_function(hook)) for hook in hooks).items():
            pile = self._piles.get((id(owner), kind, key))
            if pile is None or pile.owner() is not owner:
                code, hook = getattr(functions[key], "__code__", None), _name_of(functions[key])
                pile = self._piles[id(owner), kind, key] = Pile(HiddenRef(owner), name, kind, code, hook, count)
            elif count > pile.count:
                pile.num_growths += 1
                pile.grown_at = self._num_calls
            elif count < pile.count:
                pile.num_growths = 0
            pile.count, pile.backward = count, backward


def line_of_hook(pile: Pile) -> HookLine | None:
    """Find the line of the program that registers a hook. NOTE [Hooks that pile up]."""
    code = pile.code
    words = [word for word in pile.hook.split(".") if not word.startswith("<")]
    for name in REGISTRATIONS[pile.kind]:
        for file in own_sources(name):
            calls = list(calls_of(file, name))
            around = (call for call in calls if code is not None and code.co_filename == file and _contains(call, code))
            named = (call for call in calls if _mentions(call, words))
            call = next(around, None) or next(named, None)
            if call is not None:
                return HookLine(file, call.lineno)
    is_own = code is not None and is_own_file(code.co_filename)
    return HookLine(code.co_filename, code.co_firstlineno) if is_own and code is not None else None


def _contains(call: ast.Call, code: CodeType) -> bool:
    """Return whether a lambda is written inside a call."""
    return code.co_name == "<lambda>" and call.lineno <= code.co_firstlineno <= (call.end_lineno or call.lineno)


def _mentions(call: ast.Call, words: Sequence[str]) -> bool:
    """Return whether a function is passed to a call by its name, or made there by the function around it."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = {
        part.id if isinstance(part, ast.Name) else part.attr
        for value in given
        for part in ast.walk(value)
        if isinstance(part, ast.Name | ast.Attribute)
    }
    return any(word in names for word in words)


def _function(hook: Any) -> Any:
    """Return what is inside a partial or a bound method."""
    while True:
        if isinstance(hook, partial):
            hook = hook.func
        elif hasattr(hook, "__func__"):
            hook = hook.__func__
        else:
            return hook


def _key_of(function: Any) -> object:
    """Identify the code of a hook; an object that can be called by its class, a built-in function by itself."""
    code = getattr(function, "__code__", None)
    if code is not None:
        return code
    return id(function) if hasattr(function, "__name__") else type(function)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def piles_by_line(piles: Sequence[Pile]) -> Iterator[tuple[HookLine, list[Pile]]]:
    """Group piles by the line that registers their hooks; those of installed packages have none, and are dropped."""
    by_line: dict[HookLine, list[Pile]] = {}
    for pile in piles:
        line = line_of_hook(pile)
        if line is not None:
            by_line.setdefault(line, []).append(pile)
    yield from by_line.items()
