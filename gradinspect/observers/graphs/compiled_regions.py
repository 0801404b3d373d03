"""What a program gives to torch.compile: which regions there are, and with which backend a run compiles each."""

import sys
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from gradinspect.recording.frames import line_at, own_frame, source_line
from gradinspect.request import CompiledRegion, CompiledRun

_WHOLE = "_call_impl"  # the method that Module.compile() compiles


class CompiledRegions:
    """Notes the regions, in the order in which they are compiled, each once."""

    def __init__(self, how: CompiledRun, base_folder: Path) -> None:
        """Start without one.

        Args:
            how: With which backend this run compiles what.
            base_folder: Files below it are named relative to it.
        """
        self.found: dict[CompiledRegion, None] = {}
        self._how = how
        self._base_folder = base_folder

    def backend_of(self, compiled: Any, asked: str) -> str | None:
        """Return the backend for what the program compiles now; None: its own.

        Modules of one class that are compiled on one line, as in a loop, are one region.

        Args:
            compiled: The module or function.
            asked: The backend that the program asks for.
        """
        caller = own_frame(sys._getframe(1))
        frame = None if caller is None else source_line(caller.f_code.co_filename, line_at(caller), self._base_folder)
        region = CompiledRegion(_name_of(compiled), frame, asked)
        self.found[region] = None
        alone = self._how.alone
        return self._how.backend if alone is None or region == alone else self._how.beside


def _name_of(compiled: Any) -> str:
    """Name a function, a method with the class of its object, or the class of a module, without asking it."""
    function = compiled.__func__ if type(compiled) is MethodType else compiled
    if type(function) is not FunctionType:
        return str(type(compiled).__name__)
    if function is compiled:
        return str(function.__qualname__)
    owner = type(compiled.__self__).__name__
    return owner if function.__name__ == _WHOLE else f"{owner}.{function.__name__}"
