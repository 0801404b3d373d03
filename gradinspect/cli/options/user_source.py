"""Read the source of the user's program to show its lines."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gradinspect.request import Request
from gradinspect.source import CaptureFile, Expression, ReadSource, Script
from gradinspect.syntax import source_lines

MAX_SOURCE_BYTES = 10_000_000  # larger files are not read


def source_reader(request: Request) -> ReadSource:
    """Return a reader of files named in the record, relative to the script's folder or, for a capture, to ours."""
    folders = _folders(request)

    def read(file: str) -> Sequence[str] | None:
        path = None if _leads_away(file) else _find(file, folders)
        try:
            if path is None or path.stat().st_size > MAX_SOURCE_BYTES:
                return None
            return source_lines(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    return read


def path_namer(request: Request) -> Callable[[str], str]:
    """Return a function that names files relative to the current folder, assumed to be in the repository."""
    here, folders = Path.cwd(), _folders(request)

    def name(file: str) -> str:
        path = _find(file, folders)
        try:
            return Path(file).as_posix() if path is None else path.resolve().relative_to(here.resolve()).as_posix()
        except ValueError:
            return Path(file).as_posix() if path is None else path.as_posix()

    return name


def path_finder(request: Request) -> Callable[[str], tuple[str, str | None]]:
    """Return a function that finds files: their name relative to here, and their absolute path if they exist."""
    name, folders = path_namer(request), _folders(request)

    def find(file: str) -> tuple[str, str | None]:
        path = None if _leads_away(file) else _find(file, folders)
        return (file, None) if path is None else (name(file), path.resolve().as_posix())

    return find


def _find(file: str, folders: Sequence[Path]) -> Path | None:
    """Find a file in some folders; an invalid name is in none."""
    for folder in folders:
        try:
            if (folder / file).is_file():
                return folder / file
        except (OSError, ValueError):
            continue
    return None


def _leads_away(file: str) -> bool:
    """Return whether a path leads outside the program's folder: a capture file may come from anybody."""
    return "\0" in file or Path(file).is_absolute() or ".." in Path(file).parts


def _folders(request: Request) -> list[Path]:
    match request.source:
        case Script(path) | CaptureFile(path):
            return [path.parent, Path.cwd()]
        case Expression(module=module) if module.endswith(".py"):
            return [Path(module).parent]
        case _:
            return [Path.cwd()]
