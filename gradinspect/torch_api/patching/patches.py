"""Replace functions of torch temporarily: apply patches, undo them, and list what is patched.

A name that the holder only inherits can be patched on it too, where that is asked for; it is deleted again.

NOTE [Overlapping patches]
Two recordings may overlap in time, on two threads, and end in any order. So patches are tracked here, under a lock:
each patch is a layer over the previous value, and removing a layer from the middle rebuilds those above it. If other
code has replaced our patch meanwhile, its replacement stays, and may call ours: a removed layer must be harmless, which
is the responsibility of its maker.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gradinspect.torch_api.patching.forks import lock_of_process


class Patch(NamedTuple):
    """One name of a module or class, and its replacement."""

    holder: Any
    name: str
    make: Callable[[Any], Any]  # maps the original, as in the holder's own dict, to the replacement
    is_inherited: bool = False  # the holder has no such name in its own dict, but a base class of it


@contextmanager
def patched(*patches: Patch) -> Iterator[None]:
    """Apply patches, and undo them in reverse order, unless other code has replaced ours meanwhile.

    A name that the holder does not have is skipped: this torch has nothing to patch there.
    """
    with ExitStack() as stack:
        for patch in patches:
            if patch.is_inherited or patch.name in vars(patch.holder):
                stack.callback(_remove, _add(patch))
        yield


def patched_names() -> tuple[str, ...]:
    """List the names that are currently patched."""
    with _lock:
        return tuple(sorted(f"{slot.holder.__name__}.{slot.name}" for slot in _slots.values()))


@dataclass(eq=False)
class _Layer:
    patch: Patch
    replacement: Any = None


@dataclass(eq=False)
class _Slot:
    """One patched name, and the layers over its original, the latest on top."""

    holder: Any
    name: str
    original: Any
    is_inherited: bool = False
    layers: list[_Layer] = field(default_factory=list)

    @property
    def is_ours(self) -> bool:
        return bool(self.layers) and vars(self.holder).get(self.name) is self.layers[-1].replacement

    def rebuild(self) -> None:
        """Rebuild the replacements, each over the one below it, and install the top one."""
        below = self.original
        for layer in self.layers:
            below = layer.replacement = layer.patch.make(below)
        self.install(below)

    def install(self, value: Any) -> None:
        """Give the name a value; without a layer, the holder has what it inherits."""
        if self.is_inherited and not self.layers:
            delattr(self.holder, self.name)
        else:
            setattr(self.holder, self.name, value)


def _add(patch: Patch) -> tuple[_Slot, _Layer]:
    layer = _Layer(patch)
    with _lock:
        key = (id(patch.holder), patch.name)
        slot = _slots.get(key)
        if slot is None or not slot.is_ours:  # our first layer, or the first over another replacement
            is_inherited = patch.name not in vars(patch.holder)
            current = getattr(patch.holder, patch.name) if is_inherited else vars(patch.holder)[patch.name]
            slot = _slots[key] = _Slot(patch.holder, patch.name, current, is_inherited)
        layer.replacement = patch.make(slot.layers[-1].replacement if slot.layers else slot.original)
        slot.layers.append(layer)
        slot.install(layer.replacement)
    return slot, layer


def _remove(place: tuple[_Slot, _Layer]) -> None:
    slot, layer = place
    with _lock:
        is_ours = slot.is_ours
        was_on_top = slot.layers[-1] is layer
        slot.layers.remove(layer)
        if is_ours and was_on_top:
            slot.install(slot.layers[-1].replacement if slot.layers else slot.original)
        elif is_ours:
            slot.rebuild()
        key = (id(slot.holder), slot.name)
        if not slot.layers and _slots.get(key) is slot:
            del _slots[key]


_lock = lock_of_process()
_slots: dict[tuple[int, str], _Slot] = {}
