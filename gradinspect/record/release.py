"""Let go of the Python wrappers of a walked graph without overflowing the C stack.

NOTE [Walked graphs die recursively]
A Node that Python has seen keeps its wrapper until it dies, and the wrapper counts as one more owner. torch's own
loop that frees a chain of nodes goes on only where it is the last owner, so a walked chain is freed by recursion, one
C stack frame a node: 45,000 chained ops end the process (torch 2.13, 8 MiB of stack). Walked from Python it cannot be
made unwalked. What helps is to free it from the root on, one node at a time, while every later wrapper is still held.
So the wrappers of a large graph are parked here, and let go root first, once nobody else holds the root side.
Source: torch/csrc/autograd/function.cpp `deleteNode`, torch/csrc/autograd/python_cpp_function.cpp.
"""

import atexit
import ctypes
import gc
import sys
from collections.abc import Sequence

SMALL_GRAPH = 2_000  # nodes; a chain of that length needs under half a MiB of stack to die
_probe = [object()]
UNSHARED = sys.getrefcount(_probe[-1])  # of a wrapper that only a list holds, as this Python counts it

_parked: list[
    list[object]
] = []  # each list: wrappers that are still held, leaf side first, so that pop() is root first


def park_wrappers(wrappers: Sequence[object]) -> None:
    """Take over the wrappers of one walked graph, in topological order, root side first.

    The caller drops its own references right after; a small graph needs no care and is not kept.
    """
    if len(wrappers) <= SMALL_GRAPH:
        return
    if _parked:  # a graph that is walked again is held once, or neither list would ever be its only owner
        again = set(map(id, wrappers))
        for held in _parked:
            held[:] = [wrapper for wrapper in held if id(wrapper) not in again]
        _parked[:] = [held for held in _parked if held]
    if _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)
    _parked.append(list(reversed(wrappers)))


def release_wrappers() -> None:
    """Let go of every parked wrapper that nothing else holds, root side first.

    Cheap while the graphs are in use: one look at the root of each.
    """
    for held in _parked:
        if sys.getrefcount(held[-1]) == UNSHARED:
            _release_unshared(held)
    _parked[:] = [held for held in _parked if len(held) > SMALL_GRAPH]  # a short rest may go in any order
    if not _parked and _on_collection in gc.callbacks:
        gc.callbacks.remove(_on_collection)


def _release_unshared(held: list[object]) -> None:
    """Pop the wrappers that only this list holds; keep, in order, those that a tensor of the user still needs."""
    kept = []
    while held:
        if sys.getrefcount(held[-1]) == UNSHARED:
            held.pop()
        else:
            kept.append(held.pop())
    held.extend(reversed(kept))


def _on_collection(phase: str, _info: dict[str, int]) -> None:
    """Use Python's own garbage collections as the clock: they come often wherever objects are made."""
    if phase == "stop":
        release_wrappers()


@atexit.register
def _keep_until_the_end() -> None:
    """At interpreter exit the order of destruction is anybody's guess: let the operating system take it all."""
    release_wrappers()
    if _parked:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(_parked)))
