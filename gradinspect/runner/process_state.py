"""What a program may change of its process, and what our own work needs as it was: folder, imports, streams.

A script that calls os.chdir, replaces or closes sys.stdout, or clears sys.path must get what it asked for, and its
report must still come, to the place the user named.
"""

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from gradinspect.isolation import Imports
from gradinspect.runner.recursion import ProgramRecursionLimit
from gradinspect.runner.signals import ProgramSignals, held_signals
from gradinspect.source import Expression, Module, Script, first_folder

_STDOUT = 1


class _State(NamedTuple):
    """The process as one side wants it."""

    folder: str | None  # None: it has been removed
    stdout: Any
    stderr: Any
    stdout_copy: int | None  # what file descriptor 1 led to; None: nowhere


class ProcessState:
    """The process as it was before the program ran. Made before it runs, in the process that reports."""

    def __init__(self, imports: Imports) -> None:
        """Remember how things are.

        Args:
            imports: Made before the program.
        """
        self._imports = imports
        self._ours = _current_state()
        self._signals = ProgramSignals()
        self._recursion = ProgramRecursionLimit()
        self._theirs: _State | None = None

    def start_program(self, source: Script | Module | Expression) -> None:
        """Let everything be as python has it when it starts a program."""
        self._imports.start_program(first_folder(source))
        self._recursion.start_program()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Work in our folder and with our modules for a moment, in the middle of the program."""
        folder = _folder()
        _enter(self._ours.folder)
        try:
            with held_signals(), self._imports.restored():
                yield
        finally:
            _enter(folder)

    @contextmanager
    def with_our_stdio(self) -> Iterator[None]:
        """Work in our process_state, and with our stdout, for a moment in the middle of the program."""
        theirs, copy = sys.stdout, _copy_of_stdout()
        _flush(theirs)
        if self._ours.stdout_copy is not None:
            os.dup2(self._ours.stdout_copy, _STDOUT)
        sys.stdout = _usable(self._ours.stdout, _STDOUT)
        try:
            with self.restored():
                yield
        finally:
            _flush(sys.stdout)
            sys.stdout = theirs
            if copy is not None:
                os.dup2(copy, _STDOUT)
                os.close(copy)

    def hide_stdout(self) -> None:
        """Send what the program and its children write to stdout nowhere, until we come home."""
        _flush(sys.stdout)
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), _STDOUT)

    def restore(self) -> None:
        """Take everything over from the program, which has ended; its atexit handlers get their own back."""
        if self._theirs is not None:
            return
        self._imports.restore()
        self._recursion.restore()
        self._signals.restore()
        _flush(sys.stdout)
        _flush(sys.stderr)
        self._theirs = _current_state()
        _make_current(self._ours)
        sys.stdout, sys.stderr = _usable(self._ours.stdout, _STDOUT), _usable(self._ours.stderr, 2)
        atexit.register(self._hand_back)

    def _hand_back(self) -> None:
        if self._theirs is not None:
            _flush(sys.stdout)
            _make_current(self._theirs)
            self._imports.hand_back()
            self._recursion.hand_back()
            self._theirs = None
            self._signals.hand_back()


def _current_state() -> _State:
    return _State(_folder(), sys.stdout, sys.stderr, _copy_of_stdout())


def _copy_of_stdout() -> int | None:
    try:
        return os.dup(_STDOUT)
    except OSError:
        return None


def _make_current(state: _State) -> None:
    _enter(state.folder)
    sys.stdout, sys.stderr = state.stdout, state.stderr
    if state.stdout_copy is not None:
        os.dup2(state.stdout_copy, _STDOUT)
        os.close(state.stdout_copy)


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None


def _enter(folder: str | None) -> None:
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)


def _flush(stream: Any) -> None:
    """Flush a stream that may be closed, missing, or an object of the user."""
    with suppress(Exception):
        stream.flush()


def _usable(stream: Any, descriptor: int) -> TextIO:
    """Return a stream, or a new one on the same descriptor if the program has closed it."""
    if getattr(stream, "closed", False):
        return open(descriptor, "w", encoding="utf-8", closefd=False)  # it lives as long as we do
    return stream  # type: ignore[no-any-return]
