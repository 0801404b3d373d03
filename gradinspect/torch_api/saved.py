"""What a node has saved, in the raw: no hook runs, nothing is computed again.

NOTE [Reading saved tensors]
`_saved_x` runs the user's unpack hook, which may recompute a checkpointed forward, and raises when the value is freed
or was changed in place. `_raw_saved_x.data` does none of that: it is the tensor, or what a pack hook left, or None when
freed or never there. So the raw form is read first; `_saved_x` only where no hook can run, to tell freed from absent
and modified from live. Source: torch/csrc/autograd/python_saved_variable_hooks.cpp, saved_variable.cpp, torch 2.13.
"""

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from gradinspect.torch_api.probes import private

_UNREADABLE = "saved tensors are shown as unreadable"
_DATA = private("torch._C._autograd.SavedTensor.data", _UNREADABLE, versions="2.10 to 2.15")
_HOOK = private("torch._C._autograd.SavedTensor.unpack_hook", _UNREADABLE, versions="2.10 to 2.15")
_UNPACK = private(
    "torch._C._autograd.SavedTensor.unpack",
    "a list of saved tensors of which one was changed in place does not tell which",
    versions="2.12 to 2.15",
)
_RAW = private("torch._C._functions.MulBackward0._raw_saved_self", _UNREADABLE)
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")

# The tensor, what a pack hook left in its place, or None; and the hook that would unpack it, or None.
raw_data: Callable[[Any], Any] = attrgetter("data")
unpack_hook: Callable[[Any], Any] = attrgetter("unpack_hook")


def can_read_raw() -> bool:
    """Tell whether saved tensors can be read without running a hook."""
    return _DATA.is_there and _HOOK.is_there and _RAW.is_there


def saved_names(kind: type) -> tuple[list[tuple[str, str]], list[str]]:
    """List what nodes of a generated class save: (raw name, name) of the tensors, and the names of other values."""
    names = [name for name in dir(kind) if name.startswith("_saved_")]
    tensors = [(f"_raw{name}", name) for name in names if hasattr(kind, f"_raw{name}")]
    return tensors, [name for name in names if not hasattr(kind, f"_raw{name}")]


def python_saved_names() -> tuple[str, str]:
    """Return the raw name and the name of what a custom Function saves."""
    return "_raw_saved_tensors", "saved_tensors"


def raw_saved(node: Any, name: str, index: int | None = None) -> Any:
    """Fetch a saved tensor in the raw by the name it has in a record: `_saved_self`, `saved_tensors`.

    Raises:
        AttributeError, RuntimeError, IndexError: There is none, or it is freed.
    """
    raw = getattr(node, f"_raw_{name.removeprefix('_')}")
    return raw if index is None else raw[index]


def versions_in(error: RuntimeError) -> tuple[int, int] | None:
    """Read (current, expected) from torch's complaint about a saved tensor that was changed in place."""
    found = _VERSIONS.search(str(error))
    return None if found is None else (int(found[1]), int(found[2]))


def stale_element(raw: Any, of_list: tuple[int, int]) -> tuple[int, int] | None:
    """Find out whether this element of a list is the stale one: the list names only its first."""
    if not _UNPACK.is_there:
        return of_list if raw.data._version == of_list[0] else None
    try:
        raw.unpack()
    except RuntimeError as error:
        found = versions_in(error)
        if found is not None:
            return found
        return of_list if raw.data._version == of_list[0] else None  # an output: its own error speaks of other things
    return None
