"""Switch the process between the program's state and ours: working directory, imports, streams, signals.

A script may call os.chdir, replace or close sys.stdout, or clear sys.path. It gets what it asked for, and the report is
still written where the user requested it.
"""

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import chdir, close, dup, dup2, fstat, getcwd  # by name: a program may replace them
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from gradinspect.isolation import Imports
from gradinspect.runner.recursion import ProgramRecursionLimit
from gradinspect.runner.signals import ProgramSignals, held_signals
from gradinspect.source import Expression, Module, Script, first_folder

_STDOUT = 1
_MISSING = object()  # a stream that the program has deleted


class _Copy(NamedTuple):
    """A duplicate of file descriptor 1, and what it leads to: a program may close it, and get its number for a file."""

    descriptor: int
    leads_to: tuple[int, int]


class _State(NamedTuple):
    """The working directory and streams of one side."""

    folder: str | None  # None: it was deleted
    stdout: Any
    stderr: Any
    stdout_copy: _Copy | None  # None: stdout was closed


class ProcessState:
    """The state of the process before the program ran. Create it before the run, in the process that reports."""

    def __init__(self, imports: Imports) -> None:
        """Store the current state.

        Args:
            imports: Created before the program runs.
        """
        self._imports = imports
        self._ours = _current_state()
        self._signals = ProgramSignals()
        self._recursion = ProgramRecursionLimit()
        self._theirs: _State | None = None

    def start_program(self, source: Script | Module | Expression) -> None:
        """Set up the state in which Python starts a program."""
        self._imports.start_program(first_folder(source))
        self._recursion.start_program()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore our modules temporarily, in the middle of the program.

        Its other threads go on meanwhile: they keep its folder, its modules, its search path and its builtins.
        """
        with held_signals(), self._imports.restored():
            yield

    @contextmanager
    def with_our_stdio(self) -> Iterator[None]:
        """Restore our folder, modules and stdout temporarily, in the middle of the program."""
        theirs, copy, folder = _stream("stdout"), _copy_of_stdout(), _folder()
        _flush(theirs)
        _enter(self._ours.folder)
        _put_back(self._ours.stdout_copy)
        sys.stdout = _usable(self._ours.stdout, _STDOUT)
        try:
            with self.restored():
                yield
        finally:
            _flush(_stream("stdout"))
            _set_stream("stdout", theirs)
            _enter(folder)
            _put_back(copy)
            _close(copy)

    def hide_stdout(self) -> None:
        """Discard what the program and its children write to stdout, until `restore`."""
        _flush(_stream("stdout"))
        with Path(os.devnull).open("w") as null:
            dup2(null.fileno(), _STDOUT)

    def restore(self, *, was_stopped: bool = False) -> None:
        """Restore our state for good: the program has ended. Its atexit handlers get the program's state back.

        Args:
            was_stopped: Whether it has ended because we have stopped it.
        """
        if self._theirs is not None:
            return
        self._imports.restore()
        self._recursion.restore()
        self._signals.restore(was_stopped=was_stopped)
        _flush(_stream("stdout"))
        _flush(_stream("stderr"))
        self._theirs = _current_state()
        _make_current(self._ours)
        sys.stdout, sys.stderr = _usable(self._ours.stdout, _STDOUT), _usable(self._ours.stderr, 2)
        atexit.register(self._hand_back)

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Give the program its state back temporarily, after `restore`, to run more of its code."""
        was_restored = self._theirs is not None
        self._hand_back()
        try:
            yield
        finally:
            if was_restored:
                self.restore()

    def _hand_back(self) -> None:
        if self._theirs is not None:
            _flush(_stream("stdout"))
            _make_current(self._theirs)
            _close(self._theirs.stdout_copy)
            self._imports.hand_back()
            self._recursion.hand_back()
            self._theirs = None
            self._signals.hand_back()


class SharedState:
    """The state of a process whose program has called us: there is nothing to switch."""

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Hold its signals back while our code runs."""
        with held_signals():
            yield

    @contextmanager
    def with_our_stdio(self) -> Iterator[None]:
        """Do the same: stdout is shared."""
        with self.restored():
            yield


def _current_state() -> _State:
    return _State(_folder(), _stream("stdout"), _stream("stderr"), _copy_of_stdout())


def _stream(name: str) -> Any:
    return getattr(sys, name, _MISSING)


def _set_stream(name: str, stream: Any) -> None:
    if stream is not _MISSING:
        setattr(sys, name, stream)
    elif hasattr(sys, name):
        delattr(sys, name)


def _copy_of_stdout() -> _Copy | None:
    try:
        descriptor = dup(_STDOUT)
        return _Copy(descriptor, _leads_to(descriptor))
    except OSError:
        return None


def _leads_to(descriptor: int) -> tuple[int, int]:
    found = fstat(descriptor)
    return found.st_dev, found.st_ino


def _put_back(copy: _Copy | None) -> None:
    """Let stdout lead where it led; nothing is done if the program has closed the duplicate."""
    with suppress(OSError):
        if copy is not None and _leads_to(copy.descriptor) == copy.leads_to:
            dup2(copy.descriptor, _STDOUT)


def _close(copy: _Copy | None) -> None:
    with suppress(OSError):
        if copy is not None and _leads_to(copy.descriptor) == copy.leads_to:
            close(copy.descriptor)


def _make_current(state: _State) -> None:
    _enter(state.folder)
    _set_stream("stdout", state.stdout)
    _set_stream("stderr", state.stderr)
    _put_back(state.stdout_copy)


def _folder() -> str | None:
    try:
        return getcwd()  # noqa: PTH109  # `Path.cwd` looks it up in `os`
    except Exception:  # it was deleted, or the program has replaced what finds it
        return None


def _enter(folder: str | None) -> None:
    if folder is not None:
        with suppress(OSError):
            chdir(folder)


def _flush(stream: Any) -> None:
    """Flush a stream that may be closed, None, or an object of the user."""
    with suppress(Exception):
        stream.flush()


def _usable(stream: Any, descriptor: int) -> TextIO:
    """Return a stream, or a new one on the same descriptor if the program has closed it."""
    try:
        is_closed = getattr(stream, "closed", False)
    except ValueError:  # its buffer was detached
        is_closed = True
    if is_closed:
        return open(descriptor, "w", encoding="utf-8", closefd=False)  # open until the process ends
    return stream  # type: ignore[no-any-return]
