"""End this process as Python would, without going back to the code that runs in it."""

import atexit
import sys
from contextlib import suppress
from os import _exit  # a program may replace it
from typing import NoReturn


def end_process(exit_code: int) -> NoReturn:
    """Run the functions of atexit, write what is buffered, and end."""
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _exit(exit_code)
