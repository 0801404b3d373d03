"""Run a script or a module in this process, as `python` itself would."""

import opcode
import os
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from gradinspect.errors import GradInspectError, text_of
from gradinspect.runner.programs.cells import run_cells
from gradinspect.runner.programs.main_module import make_main_module
from gradinspect.runner.programs.notebooks import has_cells
from gradinspect.source import Module, Script

_OURS = os.path.join(str(Path(__file__).parent.parent.parent), "")  # noqa: PTH118  # a prefix that ends with the separator
_RAISES = opcode.opmap["RAISE_VARARGS"]
_EXCEPTHOOK = sys.__excepthook__  # a program may replace that too
_NO_LINE = -1  # in a traceback: look it up
_CALLS_MODE = ("handle_torch_function", os.path.join("torch", "overrides.py"))  # noqa: PTH118  # the end of a path
_CALLS_OPERATOR = ("__call__", os.path.join("torch", "_ops.py"))  # noqa: PTH118


class Stops(Protocol):
    """What may stop the program early."""

    @property
    def is_stopping(self) -> bool:
        """Whether the program is being stopped."""

    def ended(self) -> None:
        """Mark the program as ended."""


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended."""

    exit_code: int
    error: BaseException | None  # an uncaught error; its traceback contains only the user's frames
    namespace: dict[str, Any]


def run_program(program: Script | Module, arguments: Sequence[str], stopper: Stops) -> ProgramEnd:
    """Run a program as `__main__`, which stays in place until the interpreter exits, as atexit handlers expect.

    Does not import torch; the program may.

    Raises:
        GradInspectError: There is no such module, or the file is not Python.
    """
    namespace: dict[str, Any] = {}
    try:
        try:
            main = make_main_module(program, arguments)
            namespace = main.module.__dict__
            if main.cells is None:
                main.execute()
            else:
                run_cells(main.cells, namespace, lambda error: _show_error(error, stopper))
        finally:
            stopper.ended()
    except GradInspectError:
        raise
    except SystemExit as error:
        if stopper.is_stopping:
            return ProgramEnd(0, None, namespace)
        without_our_frames(error)  # asyncio prints the error of a task when it is freed
        return ProgramEnd(_exit_code(error), None, namespace)
    except BaseException as error:  # KeyboardInterrupt too: it ends the program
        if stopper.is_stopping:
            return ProgramEnd(0, None, namespace)
        return ProgramEnd(1, without_our_frames(error), namespace)
    return ProgramEnd(0, None, namespace)


def _exit_code(error: SystemExit) -> int:
    """Treat the argument of sys.exit as Python does: text is printed to stderr and means 1."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    text = f"{text_of(error.code)}\n"
    with suppress(OSError, ValueError):
        if sys.stderr is None:
            os.write(2, text.encode(errors="backslashreplace"))
        else:
            sys.stderr.write(text)
    return 1


def without_our_frames(error: BaseException, is_kept: Callable[[str], bool] | None = None) -> BaseException:
    """Remove our frames from an error's traceback, and from those of its causes, contexts and parts.

    Args:
        error: The error.
        is_kept: Whether to keep frames of a file; where none are kept, the innermost forward of a module. None: all.
    """
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        item = todo.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        item.__traceback__ = _strip(item.__traceback__, is_kept)
        todo += [item.__cause__, item.__context__, *(item.exceptions if isinstance(item, BaseExceptionGroup) else ())]
    return error


def _strip(traceback: types.TracebackType | None, is_kept: Callable[[str], bool] | None) -> types.TracebackType | None:
    kept: list[types.TracebackType] = []
    is_called_by_us = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _calls_itself_by_our_mode(kept, code):
            del kept[-2:]
        is_called_by_us = code.co_filename.startswith(_OURS) or (is_called_by_us and _is_between(kept, code))
        if not is_called_by_us:
            kept.append(traceback)
        traceback = traceback.tb_next
    stripped = None
    for part in reversed(kept if is_kept is None else _chosen(kept, is_kept)):
        line: int | None = part.tb_lineno  # None in code without line numbers, as tools write it
        line = _NO_LINE if line is None else line
        stripped = types.TracebackType(stripped, part.tb_frame, part.tb_lasti, line)
    return stripped


def _chosen(parts: Sequence[types.TracebackType], is_kept: Callable[[str], bool]) -> Sequence[types.TracebackType]:
    """Keep what the reader can change; where all is in installed files, the layer that was given what it cannot use."""
    chosen = [part for part in parts if is_kept(part.tb_frame.f_code.co_filename)]
    layers = [part for part in parts if part.tb_frame.f_code.co_name == "forward"]
    return chosen or layers[-1:] or parts[-1:]


def _calls_itself_by_our_mode(before: Sequence[types.TracebackType], code: types.CodeType) -> bool:
    """Return whether a torch function got here through our mode, which has removed its own frame.

    Then the function is on the stack twice, with the call of the mode between. A mode of the program, or a subclass of
    its own, has a frame there.
    """
    if len(before) < 2:  # the function, and the call of a mode
        return False
    return _is_at(before[-1].tb_frame.f_code, _CALLS_MODE) and before[-2].tb_frame.f_code is code


def _is_between(before: Sequence[types.TracebackType], code: types.CodeType) -> bool:
    """Return whether a function that we call calls the program: what starts it, and what our dispatch mode calls."""
    starts = not before and code.co_filename.startswith("<frozen importlib")
    return starts or _is_at(code, _CALLS_OPERATOR)


def _is_at(code: types.CodeType, place: tuple[str, str]) -> bool:
    """Return whether code is a function of that name, in a file whose path ends so."""
    name, file = place
    return code.co_name == name and code.co_filename.endswith(file)


def _show_error(error: BaseException, stopper: Stops) -> None:
    """Show an error after which a notebook goes on; it cannot do so after a stop or Ctrl-C."""
    if stopper.is_stopping or (isinstance(error, KeyboardInterrupt) and not _raises_itself(error)):
        raise error
    print_error(without_our_frames(error))


def _raises_itself(error: BaseException) -> bool:
    """Return whether a statement raised an error, rather than a signal."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry is not None and entry.tb_frame.f_code.co_code[entry.tb_lasti] == _RAISES


def leave_as_python(end: ProgramEnd) -> NoReturn:
    """End this process as Python would, in a forked child of the program."""
    left = None if end.error is None else print_error(end.error)
    raise SystemExit(end.exit_code if left is None else left)


def print_error(error: BaseException) -> int | None:
    """Print a program's error as Python would, with the excepthook that the program may have set.

    Returns:
        The exit code that the hook has left with; None if it returned.
    """
    with suppress(Exception):
        sys.stdout.flush()
    hook: Any = getattr(sys, "excepthook", None)  # whatever the program has put there
    if not hasattr(sys, "excepthook"):
        hook = _EXCEPTHOOK
        with suppress(OSError, ValueError, AttributeError):  # no stderr, or a closed one
            sys.stderr.write("sys.excepthook is missing\n")
    if hook is _EXCEPTHOOK and has_cells():
        traceback.print_exception(error)  # the hook reads files itself, and a cell is none
        return None
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit as left:  # as Python: the text of sys.exit is printed, and nothing else
        return _exit_code(left)
    except BaseException as failed:  # the report must survive it
        _print_both(failed, error)
    return None


def trace_of(error: BaseException) -> str:
    """Return the traceback of a program's error as Python would print it; "" if the program prevents that."""
    with suppress(Exception):
        return "".join(traceback.format_exception(error))
    return ""


def _print_both(failed: BaseException, error: BaseException) -> None:
    """Print the error of an excepthook, and the one that it was called with, as Python does."""
    with suppress(OSError, ValueError, AttributeError):  # no stderr, or a closed one
        sys.stderr.write("Error in sys.excepthook:\n")
        failed = failed.with_traceback(failed.__traceback__ and failed.__traceback__.tb_next)
        _EXCEPTHOOK(type(failed), failed, failed.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        _EXCEPTHOOK(type(error), error, error.__traceback__)
