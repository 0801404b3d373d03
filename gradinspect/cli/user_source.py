"""Reading the lines of the user's program again, to show them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gradinspect.capture.source import CaptureFile, Expression, Script
from gradinspect.cli.request import SourceRequest

MAX_SOURCE_BYTES = 10_000_000  # of a file of which lines are shown


def source_reader(request: SourceRequest) -> Callable[[str], Sequence[str] | None]:
    """Read files as the record names them: relative to the script's folder, or to ours for a capture file."""
    folders = _folders(request)

    def read(file: str) -> Sequence[str] | None:
        if _leads_away(file):
            return None
        for folder in folders:
            try:
                if (folder / file).is_file() and (folder / file).stat().st_size <= MAX_SOURCE_BYTES:
                    return (folder / file).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError):
                continue
        return None

    return read


def path_namer(request: SourceRequest) -> Callable[[str], str]:
    """Name files as seen from here: where the program was started is where its repository is."""
    here, folders = Path.cwd(), _folders(request)

    def name(file: str) -> str:
        path = next((folder / file for folder in folders if (folder / file).is_file()), Path(file))
        try:
            return path.resolve().relative_to(here.resolve()).as_posix()
        except ValueError:
            return path.as_posix()

    return name


def path_finder(request: SourceRequest) -> Callable[[str], tuple[str, str | None]]:
    """Find files: as seen from here, and their absolute path when they are there."""
    name, folders = path_namer(request), _folders(request)

    def find(file: str) -> tuple[str, str | None]:
        if _leads_away(file):
            return file, None
        path = next((folder / file for folder in folders if (folder / file).is_file()), None)
        return name(file), None if path is None else path.resolve().as_posix()

    return find


def _leads_away(file: str) -> bool:
    """Tell whether a file is none of the program's: a capture file may come from anybody."""
    return "\0" in file or Path(file).is_absolute() or ".." in Path(file).parts


def _folders(request: SourceRequest) -> list[Path]:
    match request.source:
        case Script(path) | CaptureFile(path):
            return [path.parent, Path.cwd()]
        case Expression(module=module) if module.endswith(".py"):
            return [Path(module).parent]
        case _:
            return [Path.cwd()]
