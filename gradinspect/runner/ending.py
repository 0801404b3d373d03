"""End this process as Python would, without going back to the code that runs in it."""

import atexit
import sys
from collections.abc import Callable
from contextlib import suppress
from os import _exit  # a program may replace it
from typing import NoReturn


def end_process(exit_code: int, deliver: Callable[[], None] | None = None) -> NoReturn:
    """Run the functions of atexit, write what is buffered, and end.

    Args:
        exit_code: Of the process.
        deliver: Called last, when the program has nothing more to say.
    """
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    try:
        if deliver is not None:
            deliver()
    finally:
        _exit(exit_code)
