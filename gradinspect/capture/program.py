"""Run a script or a module in this process, as `python` itself would."""

import importlib.machinery
import importlib.util
import io
import os
import sys
import types
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from gradinspect.capture.source import Module, Script
from gradinspect.errors import GradInspectError

_OURS = os.path.join(str(Path(__file__).parent.parent), "")  # noqa: PTH118  # a prefix that ends with the separator
_CALLS_MODE = ("handle_torch_function", os.path.join("torch", "overrides.py"))  # noqa: PTH118  # the end of a path


class Stops(Protocol):
    """Whoever may stop the program early."""

    @property
    def is_stopping(self) -> bool:
        """Whether the program is being stopped."""

    def ended(self) -> None:
        """Say that the program has ended."""


@dataclass(frozen=True)
class Ending:
    """How a program ended."""

    exit_code: int
    error: BaseException | None  # what it did not catch; its traceback holds the user's frames only
    namespace: dict[str, Any]


def run_program(program: Script | Module, arguments: Sequence[str], stopper: Stops) -> Ending:
    """Run a program as `__main__`; it stays there until the interpreter exits, as atexit handlers expect.

    Imports no torch: whether the program does is its own affair.

    Raises:
        GradInspectError: There is no such module, or the file is not Python.
    """
    try:
        path, main = _main_module(program, arguments)
    except GradInspectError:
        raise
    except BaseException as error:  # the package around a module fails while it is imported
        return Ending(1, without_our_frames(error), {})
    sys.modules["__main__"] = main
    namespace = main.__dict__
    try:
        try:
            code = _compile(path)
            exec(code, namespace)  # noqa: S102  # running the user's program is what this is for
        finally:
            stopper.ended()
    except GradInspectError:
        raise
    except SystemExit as error:
        if stopper.is_stopping:
            return Ending(0, None, namespace)
        return Ending(_exit_code(error), None, namespace)
    except BaseException as error:  # also KeyboardInterrupt: the program's own end
        if stopper.is_stopping:
            return Ending(0, None, namespace)
        return Ending(1, without_our_frames(error), namespace)
    return Ending(0, None, namespace)


def _main_module(program: Script | Module, arguments: Sequence[str]) -> tuple[Path, types.ModuleType]:
    """Make the module that the program will be, and set sys.argv and sys.path[0] for it."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if isinstance(program, Module):
        spec = _module_spec(program.name)
        path = Path(str(spec.origin))
        main.__spec__ = spec
        main.__loader__ = spec.loader
        main.__package__ = spec.parent
    else:
        path = (program.path / "__main__.py" if program.path.is_dir() else program.path).absolute()
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", str(path))
        main.__package__ = None
    main.__file__ = str(path)
    main.__dict__["__cached__"] = None
    main.__dict__.setdefault("__annotations__", {})
    sys.argv = [str(program.path if isinstance(program, Script) else path), *arguments]
    return path, main


def _module_spec(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise GradInspectError(
            f"The module '{name}' cannot be found: {error}.", "Check its name and sys.path."
        ) from None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise GradInspectError(f"There is no module '{name}' to run.", "Check its name and the folder you are in.")
    return spec


def _compile(path: Path) -> types.CodeType:
    try:
        with io.open_code(str(path)) as file:
            source = file.read()
    except OSError as error:
        raise GradInspectError(f"The script '{path}' cannot be read: {error.strerror}.", "Check the file.") from None
    if b"\0" in source:
        raise GradInspectError(f"The file '{path}' is not Python: it holds null bytes.", "Name a .py file.")
    return compile(source, str(path), "exec", dont_inherit=True)


def _exit_code(error: SystemExit) -> int:
    """Do with the argument of sys.exit what python does: a text goes to stderr and means 1."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def without_our_frames(error: BaseException) -> BaseException:
    """Take our frames out of an error's traceback, and out of those of the errors behind it."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        item = todo.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        item.__traceback__ = _strip(item.__traceback__)
        todo += [item.__cause__, item.__context__]
    return error


def _strip(traceback: types.TracebackType | None) -> types.TracebackType | None:
    kept: list[types.TracebackType] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(_OURS):
            if code.co_name == "__torch_function__" and kept and _calls_mode(kept[-1].tb_frame.f_code):
                del kept[-2:]  # and the torch function that called it, which comes once more
        elif not code.co_filename.startswith("<frozen importlib"):
            kept.append(traceback)
        traceback = traceback.tb_next
    stripped = None
    for part in reversed(kept):
        stripped = types.TracebackType(stripped, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return stripped


def _calls_mode(code: types.CodeType) -> bool:
    name, file = _CALLS_MODE
    return code.co_name == name and code.co_filename.endswith(file)


def leave_as_python(ending: Ending) -> NoReturn:
    """End this process the way `python` ends it: what a forked child of the program expects."""
    if ending.error is not None:
        print_error(ending.error)
    raise SystemExit(ending.exit_code)


def print_error(error: BaseException) -> None:
    """Print a program's error as python would, through the hook that the program may have set."""
    with suppress(Exception):
        sys.stdout.flush()
    hook = sys.excepthook if callable(sys.excepthook) else sys.__excepthook__
    hook(type(error), error, error.__traceback__)
