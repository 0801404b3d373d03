"""The Python hooks that torch will run on a node or a tensor, as records."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from weakref import ReferenceType, ref

import torch

from gradinspect.graph import Hook, HookKind
from gradinspect.recording.threads.other_threads import NodeMaker
from gradinspect.torch_api import hooks as torch_hooks
from gradinspect.torch_api.tensors import grad_fn_here, plain_tensors_only

REGISTER_HOOK = torch.Tensor.register_hook  # what a mode is told that a program calls
_KINDS: tuple[Literal["pre", "post"], ...] = ("pre", "post")


def node_hooks(node: Any) -> tuple[Hook, ...]:
    """List the hooks registered with `node.register_prehook` and `node.register_hook`."""
    return tuple(hook for kind in _KINDS for hook in _named(kind, torch_hooks.node_hooks(node, kind)))


def tensor_hooks(tensor: torch.Tensor) -> tuple[Hook, ...]:
    """List the hooks registered on a tensor itself."""
    on_tensor, after_grad = torch_hooks.tensor_hooks(tensor)
    return (*_named("tensor", on_tensor), *_named("post_accumulate_grad", after_grad))


class TensorHooks:
    """The hooks that the program registers on tensors that are no leaves, while it is recorded.

    torch runs them before the node that made the tensor, which does not show them: they are in a dict that only the
    tensor and C++ have. A tensor gets that dict with its first hook, and the node that made it then has it, also if the
    tensor is changed in place later. Source: torch/_tensor.py `Tensor.register_hook`, torch 2.13.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._found: dict[int, tuple[NodeMaker, ReferenceType[Any]]] = {}  # by the identity of the dict

    def note(self, tensor: Any, maker_of: Callable[[Any], NodeMaker | None]) -> None:
        """Note a tensor on which a hook was registered. Nothing of the program is kept alive.

        Args:
            tensor: The tensor.
            maker_of: Says which thread made a node.
        """
        if not isinstance(tensor, torch.Tensor):
            return
        with plain_tensors_only():
            hooks, node = torch_hooks.tensor_hooks(tensor)[0], grad_fn_here(tensor)
            maker = None if node is None else maker_of(node)
        key = id(hooks)
        if maker is not None and hooks and key not in self._found:
            self._found[key] = maker, ref(hooks, lambda _: self._found.pop(key, None))

    def on(self, maker_by_identity: Callable[[int], NodeMaker | None]) -> Callable[[int], tuple[Hook, ...]]:
        """Return what lists the hooks that are still registered on the outputs of a node, by its identity."""
        by_maker = defaultdict[NodeMaker, list[Hook]](list)
        for maker, reference in list(self._found.values()):
            by_maker[maker] += _named("tensor", reference() or {})

        def listed(identity: int) -> tuple[Hook, ...]:
            maker = maker_by_identity(identity) if by_maker else None
            return () if maker is None else tuple(by_maker.get(maker, ()))

        return listed


def _named(kind: HookKind, hooks: Mapping[int, Any]) -> Iterator[Hook]:
    for hook in hooks.values():
        yield Hook(kind=kind, name=getattr(hook, "__qualname__", None) or type(hook).__qualname__)
