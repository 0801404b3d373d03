"""Give a program its full recursion depth, despite our frames below it and between it and torch.

NOTE [Two recursion limits]
Python counts frames from the outermost one of a thread, and has one limit for all threads. So while a program runs,
the limit is the program's plus what we need: for our frames below it, for those between it and torch, and, while our
own code runs on any thread, for that. A call of a module adds a frame, as it does where a program has hooks, and so
does `apply` of a custom Function under `check`; where these call themselves, it is one for each two to four of the
program. The functions of `sys` that read and set the limit show the program its own limit; called after the program
has ended, they behave like Python's.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from gradinspect.torch_api.patching.forks import lock_of_process
from gradinspect.torch_api.patching.patches import Patch, patched

ON_TOP = 50  # frames and C calls between the program and torch
PART_BETWEEN = 2  # at most every second frame is ours, of what calls itself through torch
MOST_BETWEEN = 1000  # so that a program with a large limit does not reach the end of the stack of C before it
ROOM = 1000  # for our own code
_AT_DEPTH = re.compile(r"recursion depth (\d+)")  # in the error for a limit that is too low

_get, _set = sys.getrecursionlimit, sys.setrecursionlimit
_lock = lock_of_process()


class _Limit:
    """The parts of the process's limit."""

    def __init__(self) -> None:
        self.of_program = _get()
        self.added: list[int] = []  # by each program that runs
        self.num_works = 0  # how many pieces of our own code are running

    def apply(self) -> None:
        between = min(self.of_program // PART_BETWEEN, MOST_BETWEEN) if self.added else 0
        _set(self.of_program + between + max(self.added, default=0) + (ROOM if self.num_works else 0))


_limit = _Limit()


def getrecursionlimit() -> int:
    """Return the program's limit.

    Without a lock, which torch.compile cannot trace: `inspect.signature` asks for the limit, and modules that set a
    buffer in `forward` ask for a signature.
    """
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
    """Make room for our own code, however deep the program is."""
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
    """The limit of a program. Create it before the run."""

    def __init__(self) -> None:
        """Store the current limit."""
        self._patched = ExitStack()
        self._ours = self._theirs = getrecursionlimit()
        self._added: int | None = None  # while the program runs

    def start_program(self) -> None:
        """Make room for our frames below and above the program's. NOTE [Two recursion limits]."""
        with _lock:
            self._added = _depth() + ON_TOP
            _limit.of_program = self._ours
            _limit.added.append(self._added)
            _limit.apply()
        self._patched.enter_context(patched(_shown(getrecursionlimit), _shown(setrecursionlimit)))

    def restore(self) -> None:
        """Restore our limit."""
        self._theirs = getrecursionlimit()
        self._patched.close()
        with _lock:
            if self._added is not None:
                _limit.added.remove(self._added)
                self._added = None
            _limit.of_program = self._ours
            _limit.apply()

    def hand_back(self) -> None:
        """Give the program's last handlers its limit."""
        with suppress(RecursionError):
            setrecursionlimit(self._theirs)


def _shown(function: Callable[..., Any]) -> Patch:
    return Patch(sys, function.__name__, lambda _original: function)


def _depth() -> int:
    """Count the frames and C calls on this thread's stack, as Python does."""
    try:
        _set(1)
    except RecursionError as error:
        found = _AT_DEPTH.search(str(error))
        return int(found[1]) if found is not None else ON_TOP
    return 0
