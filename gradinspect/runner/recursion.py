"""Let a program call as deep as without us, though frames of ours are below it, and between it and torch.

NOTE [Two recursion limits]
Python counts frames from the outermost one of a thread, and has one limit for all threads. So while a program runs,
the limit is its own and what we need: for the frames below it, for those between it and torch, and, while some work of
ours is under way on any thread, for that. The functions of `sys` that read and set the limit show the program its own;
called after we have left, they do what Python's do.
"""

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from gradinspect.torch_api.patches import Patch, patched

ON_TOP = 50  # frames and calls of C between the program and torch
ROOM = 1000  # for a piece of work of ours
_AT_DEPTH = re.compile(r"recursion depth (\d+)")  # in the error that says a limit is too low

_get, _set = sys.getrecursionlimit, sys.setrecursionlimit
_lock = threading.RLock()


class _Limit:
    """The limit of the process, by what it is made of."""

    def __init__(self) -> None:
        self.of_program = _get()
        self.added: list[int] = []  # by each program that runs
        self.num_works = 0  # pieces of work of ours, under way

    def apply(self) -> None:
        _set(self.of_program + max(self.added, default=0) + (ROOM if self.num_works else 0))


_limit = _Limit()


def getrecursionlimit() -> int:
    """Return the program's limit."""
    with _lock:
        return _limit.of_program if _limit.added else _get()


def setrecursionlimit(limit: int, /) -> None:
    """Set the program's limit.

    Raises:
        RecursionError: The program is deeper already.
    """
    with _lock:
        if not _limit.added or type(limit) is not int or limit < 1:
            _set(limit)
            return
        depth = _depth() - max(_limit.added) + ON_TOP
        if depth >= limit:
            raise RecursionError(
                f"cannot set the recursion limit to {limit} at the recursion depth {depth}: the limit is too low"
            )
        _limit.of_program = limit
        _limit.apply()


@contextmanager
def room_for_us() -> Iterator[None]:
    """Let some work of ours call deep, wherever the program is."""
    _change_works(1)
    try:
        yield
    finally:
        _change_works(-1)


def _change_works(by: int) -> None:
    with _lock:
        if not _limit.added and not _limit.num_works:
            _limit.of_program = _get()
        _limit.num_works += by
        _limit.apply()


class ProgramRecursionLimit:
    """The limit that a program has. Made before it runs."""

    def __init__(self) -> None:
        """Change nothing yet."""
        self._patched = ExitStack()
        self._ours = self._theirs = getrecursionlimit()
        self._added: int | None = None  # while the program runs

    def start_program(self) -> None:
        """Leave room for the frames that are there now, and for those on top. NOTE [Two recursion limits]."""
        with _lock:
            self._added = _depth() + ON_TOP
            _limit.of_program = self._ours
            _limit.added.append(self._added)
            _limit.apply()
        self._patched.enter_context(patched(_shown(getrecursionlimit), _shown(setrecursionlimit)))

    def restore(self) -> None:
        """Have the limit from before."""
        self._theirs = getrecursionlimit()
        self._patched.close()
        with _lock:
            if self._added is not None:
                _limit.added.remove(self._added)
                self._added = None
            _limit.of_program = self._ours
            _limit.apply()

    def hand_back(self) -> None:
        """Let the program's last handlers have theirs."""
        with suppress(RecursionError):
            setrecursionlimit(self._theirs)


def _shown(function: Callable[..., Any]) -> Patch:
    return Patch(sys, function.__name__, lambda _original: function)


def _depth() -> int:
    """Count the frames and calls of C on this thread's stack, as Python does."""
    try:
        _set(1)
    except RecursionError as error:
        found = _AT_DEPTH.search(str(error))
        return int(found[1]) if found is not None else ON_TOP
    return 0
