"""Make a program's `__main__` module as `python` makes it.

The program is a script, a notebook, a folder or a zip file with a `__main__.py`, a module after -m, or standard input.
Imports no torch.
Source: Modules/main.c and Lib/runpy.py, Python 3.11 to 3.14.
"""

import builtins
import importlib
import importlib.machinery
import io
import linecache
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gradinspect.errors import GradInspectError
from gradinspect.runner.programs.cells import Cell, Shell
from gradinspect.runner.programs.notebooks import (
    display,
    is_notebook,
    note_left_out,
    read_notebook,
    shown_in_tracebacks,
)
from gradinspect.runner.programs.numbers_in_source import with_numbers
from gradinspect.source import STDIN, Module, Script, has_main_inside


class MainModule(NamedTuple):
    """A module that has not run yet, and what it will run."""

    module: types.ModuleType
    code: types.CodeType | None = None
    cells: tuple[Cell, ...] | None = None  # of a notebook
    found_by_runpy: str = ""  # its name after -m; "__main__" of a folder or a zip file

    def execute(self) -> None:
        """Run its code as Python does. What runpy finds it runs, too: warnings and tracebacks count its frames.

        Raises:
            GradInspectError: There is no such module.
        """
        if self.code is not None:
            exec(self.code, self.module.__dict__)  # noqa: S102  # the user's program
            return
        runpy: Any = sys.modules["runpy"]
        try:
            runpy._run_module_as_main(self.found_by_runpy, self.found_by_runpy != "__main__")
        except SystemExit as left:  # which runpy leaves with, too, if it finds nothing
            if isinstance(left.__context__, runpy._Error):
                raise _not_found(self.found_by_runpy, left.__context__) from None
            raise


def _not_found(name: str, error: Exception) -> GradInspectError:
    if error.__cause__ is not None:
        return GradInspectError(
            f"The module '{name}' cannot be imported: {error.__cause__}.", "Check its name and sys.path."
        )
    if str(error) == f"No module named {name}":
        return GradInspectError(f"There is no module '{name}' to run.", "Check its name and the current directory.")
    return GradInspectError(f"The module '{name}' cannot be run: {error}.", "Give another one, or a script.")


def make_main_module(program: Script | Module, arguments: Sequence[str]) -> MainModule:
    """Make the module, store it in sys.modules, and set sys.argv and sys.orig_argv.

    Raises:
        GradInspectError: The file is not Python.
    """
    words = ["-m", program.name] if isinstance(program, Module) else [str(program.path)]
    sys.orig_argv = [*_python_and_options(), *words, *arguments]
    if isinstance(program, Module):
        sys.argv = ["-m", *arguments]  # until it is found
        made = _from_runpy(program.name)
    else:
        sys.argv = [str(program.path), *arguments]
        if program.path == STDIN:
            made = _from_stdin()
        elif is_notebook(program.path):
            made = _from_notebook(program.path)
        elif has_main_inside(program.path):
            made = _from_runpy("__main__")
        else:
            made = _from_file(program.path.absolute(), program.numbers)
    sys.modules["__main__"] = made.module
    return made


def _python_and_options() -> list[str]:
    """Return how this process was started, without us: what is before us on the command line."""
    own = len(sys.argv) - 1
    before = sys.orig_argv[1 : len(sys.orig_argv) - own - 1]
    if sys.orig_argv[len(sys.orig_argv) - own :] != sys.argv[1:]:  # somebody has changed one of them
        before = []
    while before and before[-1] in ("-m", "-c"):
        before.pop()
    return [*sys.orig_argv[:1], *before]


def _new_module(**attributes: Any) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, **attributes})
    if sys.version_info < (3, 14):
        main.__dict__.setdefault("__annotations__", {})
    return main


def _from_runpy(name: str) -> MainModule:
    """Make a module that runpy, which is therefore loaded, will fill."""
    importlib.import_module("runpy")
    main = _new_module(__spec__=None, __loader__=importlib.machinery.BuiltinImporter, __package__=None)
    return MainModule(main, found_by_runpy=name)


def _code_of(loader: Any, name: str) -> types.CodeType:
    code = loader.get_code(name) if hasattr(loader, "get_code") else None
    if code is None:
        raise GradInspectError(f"'{name}' is not Python code.", "Give a .py file.")
    return code  # type: ignore[no-any-return]


def _from_file(path: Path, numbers: Sequence[tuple[str, int]]) -> MainModule:
    is_compiled = path.suffix == ".pyc"
    kind = importlib.machinery.SourcelessFileLoader if is_compiled else importlib.machinery.SourceFileLoader
    loader = kind("__main__", str(path))
    code = _code_of(loader, "__main__") if is_compiled else _compile(loader, path, numbers)
    main = _new_module(__loader__=loader, __package__=None, __file__=str(path), __cached__=None)
    return MainModule(main, code)


def _from_notebook(path: Path) -> MainModule:
    notebook = read_notebook(path)
    note_left_out(path, notebook.left_out)
    main = _new_module(__loader__=importlib.machinery.BuiltinImporter, __package__=None, display=display)
    shell = Shell(main.__dict__)
    main.__dict__["get_ipython"] = lambda: shell
    return MainModule(main, cells=notebook.cells)


def _from_stdin() -> MainModule:
    source = b"" if sys.stdin is None else sys.stdin.buffer.read()
    text = source.decode(errors="replace")
    linecache.cache["<stdin>"] = shown_in_tracebacks(text, "<stdin>")  # it can be read only once
    loader = importlib.machinery.BuiltinImporter
    main = _new_module(__loader__=loader, __package__=None, __file__="<stdin>", __cached__=None)
    return MainModule(main, compile(source, "<stdin>", "exec", dont_inherit=True))


def _compile(loader: Any, path: Path, numbers: Sequence[tuple[str, int]]) -> types.CodeType:
    try:
        with io.open_code(str(path)) as file:
            source = file.read()
    except OSError as error:
        raise GradInspectError(f"The script '{path}' cannot be read: {error.strerror}.", "Check the file.") from None
    if b"\0" in source:
        raise GradInspectError(f"The file '{path}' is not Python: it contains null bytes.", "Give a .py file.")
    code = with_numbers(source, dict(numbers)) if numbers else source
    return loader.source_to_code(code, str(path))  # type: ignore[no-any-return]
