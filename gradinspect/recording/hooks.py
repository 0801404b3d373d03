"""The Python hooks that torch will run on a node or a tensor, as records."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch

from gradinspect.graph import Hook, HookKind
from gradinspect.torch_api import hooks as torch_hooks

_KINDS: tuple[Literal["pre", "post"], ...] = ("pre", "post")


def node_hooks(node: Any) -> tuple[Hook, ...]:
    """List the hooks registered with `node.register_prehook` and `node.register_hook`."""
    return tuple(hook for kind in _KINDS for hook in _named(kind, torch_hooks.node_hooks(node, kind)))


def tensor_hooks(tensor: torch.Tensor) -> tuple[Hook, ...]:
    """List the hooks registered on a tensor itself."""
    on_tensor, after_grad = torch_hooks.tensor_hooks(tensor)
    return (*_named("tensor", on_tensor), *_named("post_accumulate_grad", after_grad))


def _named(kind: HookKind, hooks: Mapping[int, Any]) -> Iterator[Hook]:
    for hook in hooks.values():
        yield Hook(kind=kind, name=getattr(hook, "__qualname__", None) or type(hook).__qualname__)
