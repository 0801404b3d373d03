"""Release the Python wrappers of a walked graph without overflowing the C stack.

NOTE [Walked graphs are freed recursively]
A Node accessed from Python keeps its wrapper until it is freed, and the wrapper is one more owner. torch's loop that
frees a chain of nodes continues only where it is the last owner, so a walked chain is freed by recursion, one C stack
frame per node: 45,000 chained ops crash the process (torch 2.13, 8 MiB of stack). That cannot be undone. The remedy is
to free it from the root, one node at a time, while every later wrapper is still held. So the wrappers of a large graph
are parked here, and released root first, once nothing else holds the root side.
Source: torch/csrc/autograd/function.cpp `deleteNode`, torch/csrc/autograd/python_cpp_function.cpp.
"""

import atexit
import ctypes
import gc
import sys
from collections.abc import Sequence
from sys import getrefcount

from gradinspect.torch_api.patching.forks import lock_of_process

SMALL_GRAPH = 2_000  # nodes; freeing a chain of that length needs under half a MiB of stack
_probe = [object()]
UNSHARED = getrefcount(_probe[-1])  # reference count of a wrapper that only a list holds
UNSHARED_BY_MAP = next(map(sys.getrefcount, _probe))  # the same, of one that is passed on by `map`

_lock = lock_of_process()
_parked: list[list[object]] = []  # under the lock: lists of held wrappers, leaf side first, so that pop() is root first


class _Releasing:
    """Whether wrappers are being released: what is freed, or a collection, may ask for it again."""

    is_on = False


def park_wrappers(wrappers: Sequence[object]) -> None:
    """Take ownership of the wrappers of one walked graph, in topological order, root side first.

    The caller drops its own references right after. A small graph is safe and is not kept.
    """
    if len(wrappers) <= SMALL_GRAPH:
        return
    with _lock:
        _hold_once(wrappers)
        if _on_collection not in gc.callbacks:
            gc.callbacks.append(_on_collection)
        _parked.append(list(reversed(wrappers)))


def _hold_once(wrappers: Sequence[object]) -> None:
    """Drop what is parked of a graph that is walked again: of two lists neither would be its only owner."""
    again = set(map(id, wrappers)) if _parked else set()
    for held in _parked:
        held[:] = [wrapper for wrapper in held if id(wrapper) not in again]
    _parked[:] = [held for held in _parked if held]


def release_wrappers() -> None:
    """Release every parked wrapper that nothing else holds, root side first.

    Cheap while the graphs are in use: it only checks the root of each.
    """
    if _Releasing.is_on or not _lock.acquire(blocking=False):  # inside another call, or on another thread
        return
    _Releasing.is_on = True
    try:
        for held in tuple(_parked):
            if held and getrefcount(held[-1]) == UNSHARED:
                _release_unshared(held)
        _parked[:] = [held for held in _parked if len(held) > SMALL_GRAPH]  # a short rest may be freed in any order
        if not _parked and _on_collection in gc.callbacks:
            gc.callbacks.remove(_on_collection)
    finally:
        _Releasing.is_on = False
        _lock.release()


def _release_unshared(held: list[object]) -> None:
    """Pop the wrappers that only this list holds; keep, in order, those that the user still needs."""
    if max(map(sys.getrefcount, held)) == UNSHARED_BY_MAP:
        held.clear()  # from its end, so root first as well
        return
    kept = []
    while held:
        if getrefcount(held[-1]) == UNSHARED:
            held.pop()
        else:
            kept.append(held.pop())
    held.extend(reversed(kept))


def _on_collection(phase: str, _info: dict[str, int]) -> None:
    """Run at Python's garbage collections, which are frequent wherever objects are made."""
    if phase == "stop":
        release_wrappers()


@atexit.register
def _keep_until_the_end() -> None:
    """Keep everything at interpreter exit, where the order of destruction is undefined."""
    release_wrappers()
    if _parked:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(_parked)))
