"""The project of a program: its folder, and what `[tool.gradinspect]` in its pyproject.toml says.

NOTE [Which pyproject.toml]
As ruff does: the nearest one at or above the script's folder that has `[tool.gradinspect]`; the current folder's for a
module, an expression in one, and standard input. Those without that table are passed over. Paths in it are relative to
its folder. `--select` on the command line sets its select and skip aside, `--skip` adds to them, and any other option
replaces the key of its name.
"""

import difflib
import os
import shlex
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gradinspect.errors import GradInspectError
from gradinspect.request import Request
from gradinspect.source import STDIN, Expression, Module, Script, Source

if TYPE_CHECKING:
    from gradinspect.checks.findings import ProgramFile

NAME = "pyproject.toml"
_TABLE = "[tool.gradinspect]"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a pyproject.toml says."""

    file: Path | None = None  # that says it
    select: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    steps: int | None = None
    baseline: Path | None = None


class Project(NamedTuple):
    """Where a program belongs."""

    root: Path  # with a pyproject.toml, else a repository, else the program's folder
    repository: Path  # else the current folder, if the program is below it
    settings: Settings


def project_of(source: Source) -> Project:
    """Find the project of a program, and read its settings.

    Raises:
        GradInspectError: They are wrong.
    """
    folder = _folder_of(source)
    above = [folder, *folder.parents]
    root = next((one for one in above if _exists(one / NAME)), None)
    repository = next((one for one in above if _exists(one / ".git")), None)
    here = Path.cwd() if Path.cwd() in above else None  # a checkout may come without its history
    return Project(
        root=root or repository or folder,
        repository=repository or here or root or folder,
        settings=_settings(above),
    )


def relative_names(files: "Sequence[ProgramFile]", folder: Path) -> Callable[[str], str]:
    """Return a function that names files of the record relative to a folder; those that are not below it stay."""
    names = {file.name: _below(Path(file.path), folder) or file.name for file in files if file.path}
    return lambda name: names.get(name, name)


def name_of_program(request: Request, root: Path) -> str:
    """Name what was run, with its arguments, the same on every machine: `train.py --lr 0.1`."""
    match request.source:
        case Module(name):
            what = f"-m {name}"
        case Expression(module, text) if module.endswith(".py"):
            what = f"{_name(Path(module), root)}:{text}"
        case Script(path) if path != STDIN:
            what = _name(path, root)
        case _:
            what = request.label
    return f"{what} {shlex.join(request.arguments)}".rstrip()


def _name(path: Path, root: Path) -> str:
    return _below(_absolute(path), root) or path.name


def _below(path: Path, folder: Path) -> str | None:
    """Name a file relative to a folder; Python follows links where it imports, and the user need not."""
    for file, start in ((path, folder), (path.resolve(), folder.resolve())):
        if file.is_relative_to(start):
            return file.relative_to(start).as_posix()
    return None


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow links to paths the user never used


def _folder_of(source: Source) -> Path:
    match source:
        case Script(path) if path != STDIN:
            return _absolute(path if path.is_dir() else path.parent)
        case Expression(module=module) if module.endswith(".py"):
            return _absolute(Path(module).parent)
        case _:
            return Path.cwd()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder above may not be readable
        return False


def _settings(folders: Sequence[Path]) -> Settings:
    for folder in folders:
        file = folder / NAME
        table = _table(file) if _exists(file) else None
        if table is not None:
            return _checked(table, file)
    return Settings()


def _table(file: Path) -> Any:  # noqa: ANN401  # whatever is written there
    """Return the table of a pyproject.toml; None if it has none.

    Raises:
        GradInspectError: It cannot be read.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise GradInspectError(f"'{file}' cannot be read: {error.strerror}.", "Check its permissions.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split()) or "too deep"
        raise GradInspectError(f"'{file}' is not valid TOML: {reason}.", "Correct it.") from None
    tool = document.get("tool")
    return tool.get("gradinspect") if isinstance(tool, dict) else None


def _checked(table: object, file: Path) -> Settings:
    """Check the keys and values of a table.

    Raises:
        GradInspectError: One is wrong.
    """
    if not isinstance(table, dict):
        raise GradInspectError(f"'{_TABLE}' in '{file}' is not a table.", f"Write its keys below a line {_TABLE}.")
    read: dict[str, Any] = {"file": file}
    for key, value in table.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"Closest match: {near[0]}." if near else f"Known keys: {', '.join(_KEYS)}."
            raise GradInspectError(f"'{key}' in {_TABLE} of '{file}' is not a known key.", hint)
        expected, accept = _KEYS[key]
        accepted = accept(value)
        if accepted is None:
            raise GradInspectError(f"'{key}' in {_TABLE} of '{file}' must be {expected}, not {value!r}.", "Correct it.")
        read[key] = file.parent / accepted if isinstance(accepted, Path) else accepted
    return Settings(**read)


def _codes(value: object) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _file_name(value: object) -> Path | None:
    return Path(value) if isinstance(value, str) and value and "\0" not in value else None


_KEYS: dict[str, tuple[str, Callable[[object], object]]] = {
    "select": ("a list of codes", _codes),
    "skip": ("a list of codes", _codes),
    "steps": ("a whole number of at least 1", _number),
    "baseline": ("the name of a file", _file_name),
}
