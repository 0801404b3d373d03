"""The baseline of `check`: which file, what is in it, and writing it anew."""

import codecs
from pathlib import Path

from gradinspect.checks.baseline import Baseline, read_baseline, write_baseline
from gradinspect.cli.output.files import check_target, write_content
from gradinspect.errors import GradInspectError
from gradinspect.units import format_count
from gradinspect.user_files import read_file


def open_baseline(path: Path | None, *, writes: bool) -> Baseline | None:
    """Read a baseline before anything runs; an empty one if it is about to be written for the first time.

    Raises:
        GradInspectError: There is none, it is something else, or it cannot be written.
    """
    if path is None:
        if writes:
            raise GradInspectError("'--write-baseline' has no file to write.", "Name one: --baseline FILE")
        return None
    if writes:
        check_target(path, force=True)
    try:
        content = read_file(path).removeprefix(codecs.BOM_UTF8)  # which some editors write
    except FileNotFoundError:
        if writes:
            return Baseline(programs={})
        raise GradInspectError(
            f"The baseline '{path}' does not exist.", "Add --write-baseline to write it, or remove the option."
        ) from None
    except OSError as error:
        raise GradInspectError(f"The baseline '{path}' cannot be read: {error.strerror}.", "Check its name.") from None
    found = read_baseline(content)
    if found is None:
        raise GradInspectError(f"'{path}' is not a baseline of gradinspect.", "Give another file.")
    return found


def save_baseline(path: Path, before: Baseline, after: Baseline, program: str) -> None:
    """Write a baseline, and say what has changed for a program."""
    old = {one.fingerprint for one in before.programs.get(program, ())}
    new = {one.fingerprint for one in after.programs.get(program, ())}
    changes = f"{len(new - old)} added, {len(old - new)} removed"
    write_content(path, write_baseline(after), (f"{format_count(len(new), 'finding')}, {changes}",), force=True)
