"""Which Python hooks torch will run on a node.

NOTE [Asking for hooks]
torch shows a node's hooks nowhere. But to register one, it first hands the dict of those already there to
`_register_hook`, a Python function, and adds nothing when that raises. So the question is asked by a registration that
never happens. It costs 4 microseconds a node, and is left out when no hook of any kind was ever made in this process.
Source: torch/csrc/autograd/python_cpp_function.cpp `registerFunctionHook`, torch/autograd/function.py, torch 2.13.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.function import _HookMixin
from torch.utils.hooks import RemovableHandle

from gradinspect.graph import Hook, HookKind

_REGISTRATIONS: tuple[tuple[HookKind, str], ...] = (("pre", "register_prehook"), ("post", "register_hook"))


class _AskedError(Exception):
    """Ends a registration before anything is registered."""


class HookReader:
    """Reads the hooks of nodes. Get one from `hook_reader`."""

    def __init__(self) -> None:
        """Start with no answer."""
        self.answer: Mapping[int, Any] | None = None

    def node_hooks(self, node: Any) -> tuple[Hook, ...]:
        """List the hooks registered with `node.register_prehook` and `node.register_hook`."""
        hooks: list[Hook] = []
        for kind, register in _REGISTRATIONS:
            self.answer = None
            try:
                getattr(node, register)(None)
            except _AskedError:
                hooks.extend(_named(kind, self.answer))
            except Exception:  # noqa: S112  # a node of a kind that cannot be asked has no answer
                continue
        return tuple(hooks)


@contextmanager
def hook_reader() -> Iterator[HookReader | None]:
    """Make it possible to ask nodes for their hooks; None when there cannot be any."""
    if RemovableHandle.next_id == _IDS_AT_IMPORT:
        yield None
        return
    reader = HookReader()

    def ask(hooks: Mapping[int, Any] | None, _hook: object) -> None:
        reader.answer = hooks
        raise _AskedError

    original = _HookMixin.__dict__["_register_hook"]
    _HookMixin._register_hook = staticmethod(ask)
    try:
        yield reader
    finally:
        _HookMixin._register_hook = original


def tensor_hooks(tensor: torch.Tensor) -> tuple[Hook, ...]:
    """List the hooks registered on a tensor itself."""
    return (
        *_named("tensor", getattr(tensor, "_backward_hooks", None)),
        *_named("post_accumulate_grad", getattr(tensor, "_post_accumulate_grad_hooks", None)),
    )


def _named(kind: HookKind, hooks: Mapping[int, Any] | None) -> Iterator[Hook]:
    for hook in (hooks or {}).values():
        yield Hook(kind=kind, name=getattr(hook, "__qualname__", None) or type(hook).__qualname__)


_IDS_AT_IMPORT = RemovableHandle.next_id
