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

SMALL_GRAPH = 2_000  # nodes; freeing a chain of that length needs under half a MiB of stack
_probe = [object()]
UNSHARED = sys.getrefcount(_probe[-1])  # reference count of a wrapper that only a list holds
UNSHARED_BY_MAP = next(map(sys.getrefcount, _probe))  # the same, of one that is passed on by `map`

_parked: list[list[object]] = []  # lists of held wrappers, leaf side first, so that pop() is root first


def park_wrappers(wrappers: Sequence[object]) -> None:
    """Take ownership of the wrappers of one walked graph, in topological order, root side first.

    The caller drops its own references right after. A small graph is safe and is not kept.
    """
    if len(wrappers) <= SMALL_GRAPH:
        return
    if _parked:  # a graph walked again is held once, or neither list would be its only owner
        again = set(map(id, wrappers))
        for held in _parked:
            held[:] = [wrapper for wrapper in held if id(wrapper) not in again]
        _parked[:] = [held for held in _parked if held]
    if _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)
    _parked.append(list(reversed(wrappers)))


def release_wrappers() -> None:
    """Release every parked wrapper that nothing else holds, root side first.

    Cheap while the graphs are in use: it only checks the root of each.
    """
    for held in _parked:
        if sys.getrefcount(held[-1]) == UNSHARED:
            _release_unshared(held)
    _parked[:] = [held for held in _parked if len(held) > SMALL_GRAPH]  # a short rest may be freed in any order
    if not _parked and _on_collection in gc.callbacks:
        gc.callbacks.remove(_on_collection)


def _release_unshared(held: list[object]) -> None:
    """Pop the wrappers that only this list holds; keep, in order, those that the user still needs."""
    if max(map(sys.getrefcount, held)) == UNSHARED_BY_MAP:
        held.clear()  # from its end, so root first as well
        return
    kept = []
    while held:
        if sys.getrefcount(held[-1]) == UNSHARED:
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
