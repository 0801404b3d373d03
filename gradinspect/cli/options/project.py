"""The project of a program: its folder, and what `[tool.gradinspect]` in its pyproject.toml says."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradinspect.checks.findings import ProgramFile
from gradinspect.checks.settings import NAME, Settings, read_settings
from gradinspect.request import Request
from gradinspect.source import STDIN, Expression, Module, Script, Source


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
        settings=read_settings(folder),
    )


def relative_names(files: Sequence[ProgramFile], folder: Path) -> Callable[[str], str]:
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
