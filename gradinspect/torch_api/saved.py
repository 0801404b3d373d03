"""Read raw saved tensors of a node: no hook runs, nothing is recomputed.

NOTE [Reading saved tensors]
`_saved_x` runs the user's unpack hook, which may recompute a checkpointed forward, and raises if the value was freed or
modified in place. `_raw_saved_x.data` does neither: it is the tensor, or what a pack hook returned, or None if freed or
never set. So the raw form is read first, and `_saved_x` only if no hook can run, to distinguish freed from absent and
modified from live. Source: torch/csrc/autograd/python_saved_variable_hooks.cpp, saved_variable.cpp, torch 2.13.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from operator import attrgetter
from threading import get_ident
from typing import Any, Self

import torch

from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import private

_UNREADABLE = "saved tensors are read only where no hook can be, and bytes are a lower bound"
_DATA = private("torch._C._autograd.SavedTensor.data", _UNREADABLE, versions="2.10 to 2.15")
_HOOK = private("torch._C._autograd.SavedTensor.unpack_hook", _UNREADABLE, versions="2.10 to 2.15")
_UNPACK = private(
    "torch._C._autograd.SavedTensor.unpack",
    "it is unknown which tensor of a saved list was modified in place",
    versions="2.12 to 2.15",
    is_rare=True,
)
_RAW = private("torch._C._functions.MulBackward0._raw_saved_self", _UNREADABLE)
_PUSH = private("torch._C._autograd._push_saved_tensors_default_hooks", "no saved tensor is read")
_POP = private("torch._C._autograd._pop_saved_tensors_default_hooks", "no saved tensor is read")
_REGISTER = private("torch._C._autograd.SavedTensor.register_hooks", "no saved tensor is read")
_MODIFIED = re.compile(r"\[torch\.(\w+\.)?(\w+)Tensor \[([\d, ]*)\]\]")
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Bool": "bool", "Byte": "uint8",
    "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}  # fmt: skip
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")

# The tensor, or what a pack hook returned, or None; and the hook that would unpack it, or None.
raw_data: Callable[[Any], Any] = attrgetter("data")
unpack_hook: Callable[[Any], Any] = attrgetter("unpack_hook")


def can_read_raw() -> bool:
    """Return whether saved tensors can be read without running a hook."""
    return _DATA.is_there and _HOOK.is_there and _RAW.is_there


class PushedHooks:
    """Tracks where saved tensors cannot have hooks, for torch versions that do not say. Use it as a context manager.

    NOTE [Where no hook can be]
    Up to torch 2.9 a saved tensor does not say whether it has a hook, and there is no way to check. But there are only
    two ways to add one: pushed as a default while the node is made, or registered on the saved tensor. Both are
    observed from before the program runs. What the recorded thread made outside all default hooks may be read as the
    engine reads it; once a hook was registered directly, nothing is read. Nor is what another thread has made: numbers
    count for each thread, and default hooks may have been pushed there before anybody watched.
    """

    def __init__(self, others_from: int) -> None:
        """Start empty.

        Args:
            others_from: The first identity of a node that another thread has made.
        """
        self._others_from = others_from
        self._since: int | None = None  # the first observed number; None: nothing was observed
        self._was_registered = False
        self._thread = get_ident()  # the recorded one
        self._depth, self._start = 0, 0  # how many hooks are pushed there, and since which number
        self._windows: list[tuple[int, int]] = []
        self._patched = ExitStack()

    def __enter__(self) -> Self:
        """Start observing, if this torch needs it."""
        if not can_read_raw() and _PUSH.is_there and _POP.is_there and _REGISTER.is_there:
            module: Any = torch._C._autograd
            self._since, self._thread = next_sequence_nr(), get_ident()
            self._patched.enter_context(
                patched(
                    Patch(module, "_push_saved_tensors_default_hooks", self._pushing),
                    Patch(module, "_pop_saved_tensors_default_hooks", self._popping),
                    Patch(module.SavedTensor, "register_hooks", self._registering),
                )
            )
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop observing; later nodes are unknown."""
        self._patched.close()

    def is_free(self, identity: int) -> bool:
        """Return whether a node's saved tensors cannot have hooks.

        Args:
            identity: The thread and the number of the node. NOTE [Numbers of a node] in `recording.threads.threads`.
        """
        if self._since is None or self._was_registered or not self._since <= identity < self._others_from:
            return False
        is_open = bool(self._depth) and identity >= self._start
        return not is_open and not any(start <= identity < end for start, end in self._windows)

    def _pushing(self, original: Any) -> Any:
        def push(*hooks: Any) -> Any:
            if get_ident() == self._thread:
                self._start = self._start if self._depth else next_sequence_nr()
                self._depth += 1
            return original(*hooks)

        return push

    def _popping(self, original: Any) -> Any:
        def pop() -> Any:
            if get_ident() == self._thread and self._depth:
                self._depth -= 1
                if not self._depth:
                    self._windows.append((self._start, next_sequence_nr()))
            return original()

        return pop

    def _registering(self, original: Any) -> Any:
        def register_hooks(*arguments: Any) -> Any:
            self._was_registered = True
            return original(*arguments)

        return register_hooks


def saved_names(kind: type) -> tuple[list[tuple[str, str]], list[str]]:
    """List the saved attributes of a generated class: (raw name, name) of tensors, and names of other values."""
    names = [name for name in dir(kind) if name.startswith("_saved_")]
    tensors = [(f"_raw{name}", name) for name in names if hasattr(kind, f"_raw{name}")]
    return tensors, [name for name in names if not hasattr(kind, f"_raw{name}")]


def python_saved_names() -> tuple[str, str]:
    """Return the raw name and the name of a custom Function's saved tensors."""
    return "_raw_saved_tensors", "saved_tensors"


def raw_saved(node: Any, name: str, index: int | None = None) -> Any:
    """Fetch a raw saved tensor by its name in a record: `_saved_self`, `saved_tensors`.

    Raises:
        AttributeError, RuntimeError, IndexError: It does not exist or was freed.
    """
    raw = getattr(node, f"_raw_{name.removeprefix('_')}")
    return raw if index is None else raw[index]


def saved_contents(node: Any, raw_names: Sequence[str], identity: int, hooks: PushedHooks) -> list[Any]:
    """List what a node saves, tensors or packed objects, as far as it can be read.

    Args:
        node: The node.
        raw_names: The names of its raw saved tensors.
        identity: Its thread and number.
        hooks: Knows where no hook can be, if torch does not say.
    """
    found: list[Any] = []
    for raw_name in raw_names:
        try:
            if can_read_raw():
                raw = getattr(node, raw_name)
                found.extend(map(raw_data, raw if isinstance(raw, list | tuple) else (raw,)))
            elif hooks.is_free(identity):
                is_python = raw_name == python_saved_names()[0]
                found.append(getattr(node, raw_name.removeprefix("_raw_" if is_python else "_raw")))
        except RuntimeError:  # freed
            continue
    return found


def versions_in(error: RuntimeError) -> tuple[int, int] | None:
    """Read (current, expected) from torch's error about a saved tensor that was modified in place."""
    found = _VERSIONS.search(str(error))
    return None if found is None else (int(found[1]), int(found[2]))


def modified_tensor(error: RuntimeError) -> tuple[tuple[int, ...], str, str] | None:
    """Read shape, dtype and device from torch's error about a saved tensor that was modified in place."""
    found = _MODIFIED.search(str(error))
    if found is None or found[2] not in _DTYPES:
        return None
    shape = tuple(int(size) for size in found[3].split(",") if size.strip())
    return shape, _DTYPES[found[2]], (found[1] or "cpu").removesuffix(".")


def stale_element(raw: Any, of_list: tuple[int, int]) -> tuple[int, int] | None:
    """Check whether this element of a list is stale; the list's error names only the first one."""
    if not _UNPACK.is_there:
        _UNPACK.note_missed()
        return of_list if raw.data._version == of_list[0] else None
    try:
        raw.unpack()
    except RuntimeError as error:
        found = versions_in(error)
        if found is not None:
            return found
        return (
            of_list if raw.data._version == of_list[0] else None
        )  # an output, whose own error is about something else
    return None
