"""Reading the lines of the user's program again, to show them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gradinspect.request import Request
from gradinspect.source import CaptureFile, Expression, ReadSource, Script

MAX_SOURCE_BYTES = 10_000_000  # of a file of which lines are shown


def source_reader(request: Request) -> ReadSource:
    """Read files as the record names them: relative to the script's folder, or to ours for a capture file."""
    folders = _folders(request)

    def read(file: str) -> Sequence[str] | None:
        path = None if _leads_away(file) else _find(file, folders)
        try:
            if path is None or path.stat().st_size > MAX_SOURCE_BYTES:
                return None
            return path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return None

    return read


def path_namer(request: Request) -> Callable[[str], str]:
    """Name files as seen from here: where the program was started is where its repository is."""
    here, folders = Path.cwd(), _folders(request)

    def name(file: str) -> str:
        path = _find(file, folders)
        try:
            return Path(file).as_posix() if path is None else path.resolve().relative_to(here.resolve()).as_posix()
        except ValueError:
            return Path(file).as_posix() if path is None else path.as_posix()

    return name


def path_finder(request: Request) -> Callable[[str], tuple[str, str | None]]:
    """Find files: as seen from here, and their absolute path when they are there."""
    name, folders = path_namer(request), _folders(request)

    def find(file: str) -> tuple[str, str | None]:
        path = None if _leads_away(file) else _find(file, folders)
        return (file, None) if path is None else (name(file), path.resolve().as_posix())

    return find


def _find(file: str, folders: Sequence[Path]) -> Path | None:
    """Find a file in some folders; one of a name that no system allows is in none."""
    for folder in folders:
        try:
            if (folder / file).is_file():
                return folder / file
        except (OSError, ValueError):
            continue
    return None


def _leads_away(file: str) -> bool:
    """Tell whether a file is none of the program's: a capture file may come from anybody."""
    return "\0" in file or Path(file).is_absolute() or ".." in Path(file).parts


def _folders(request: Request) -> list[Path]:
    match request.source:
        case Script(path) | CaptureFile(path):
            return [path.parent, Path.cwd()]
        case Expression(module=module) if module.endswith(".py"):
            return [Path(module).parent]
        case _:
            return [Path.cwd()]
