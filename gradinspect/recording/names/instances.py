"""Find all live instances of a class without touching other objects.

NOTE [Objects under construction]
`gc.get_objects()` returns everything, including a tuple that another thread is still filling, which then fails with a
SystemError because of the extra reference. `gc.get_referrers` of the classes returns only what refers to them, as each
instance does.

NOTE [Frozen objects]
What `gc.freeze()` hides from the collector, `gc.get_referrers` does not find either. Programs freeze their models and
optimizers once these have been made, and so do we before a process is copied. So the instances of the classes that are
asked for are noted before that, weakly.
"""

import functools
import gc
from collections.abc import Callable, Iterable
from contextlib import suppress
from gc import get_referrers
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from gradinspect.torch_api.dynamo import passed_by
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.weak import HiddenRef

_NOTED = (Optimizer, lr_scheduler.LRScheduler, nn.Module, torch.amp.GradScaler, torch.Tensor)
_frozen: dict[int, HiddenRef] = {}  # by identity. NOTE [Frozen objects]


def instances_of(*roots: type) -> list[Any]:
    """List the live instances of Python classes and their subclasses."""
    kinds = _kinds_of(roots)
    found = {id(item): item for item in get_referrers(*kinds.values()) if id(type(item)) in kinds}
    for one in list(_frozen.values()):
        item = one()
        if item is not None and id(type(item)) in kinds:
            found[id(item)] = item
    return list(found.values())


def _kinds_of(roots: Iterable[type]) -> dict[int, type]:
    """List classes and their subclasses, by identity: a metaclass may define `==`, and no hash."""
    todo = list(roots)
    kinds: dict[int, type] = {}
    while todo:
        kind = todo.pop()
        if id(kind) not in kinds:
            kinds[id(kind)] = kind
            todo.extend(type.__subclasses__(kind))
    return kinds


def note_before_freeze() -> None:
    """Note what `instances_of` could not find any more after a `gc.freeze()`."""
    for number, one in list(_frozen.items()):
        if one() is None:
            _frozen.pop(number, None)
    for item in instances_of(*_NOTED):
        with suppress(TypeError):  # a class without weak references
            _frozen[id(item)] = HiddenRef(item)


def freezes_noted() -> Patch:
    """Note what is there whenever the program calls `gc.freeze()`."""
    return Patch(gc, "freeze", _noting)


def _noting(original: Callable[..., None]) -> Callable[..., None]:
    @passed_by
    @functools.wraps(original)
    def freeze(*args: Any) -> None:
        with suppress(Exception):  # an error of ours must not reach the program
            note_before_freeze()
        return original(*args)

    return freeze


def live_optimizers() -> list[Any]:
    """List the live optimizers.

    One whose class does not call `Optimizer.__init__` is left out: torch knows no parameters of it. One that hands on
    what is asked of it, as a wrapper does, has a property for them.
    """
    return [one for one in instances_of(Optimizer) if "param_groups" in vars(one) or hasattr(type(one), "param_groups")]
