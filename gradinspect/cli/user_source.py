"""Reading the lines of the user's program again, to show them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gradinspect.capture.source import CaptureFile, Expression, Script
from gradinspect.cli.request import SourceRequest

MAX_SOURCE_BYTES = 10_000_000  # of a file of which lines are shown


def source_reader(request: SourceRequest) -> Callable[[str], Sequence[str] | None]:
    """Read files as the record names them: relative to the script's folder, or to ours for a capture file."""
    match request.source:
        case Script(path) | CaptureFile(path):
            folders = [path.parent, Path.cwd()]
        case Expression(module=module) if module.endswith(".py"):
            folders = [Path(module).parent]
        case _:
            folders = [Path.cwd()]

    def read(file: str) -> Sequence[str] | None:
        if Path(file).is_absolute() or ".." in Path(file).parts:  # a capture file may come from anybody
            return None
        for folder in folders:
            try:
                if (folder / file).is_file() and (folder / file).stat().st_size <= MAX_SOURCE_BYTES:
                    return (folder / file).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError):
                continue
        return None

    return read
