"""What `[tool.gradinspect]` in a pyproject.toml says, and the codes that are reported because of it.

NOTE [Which pyproject.toml]
As ruff does: the nearest one at or above the script's folder that has `[tool.gradinspect]`; the current folder's for a
module, an expression in one, and standard input; for `gradinspect.check()` that of the file which defines the step.
Those without that table are passed over. Paths in it are relative to its folder. `--select` on the command line sets
its select and skip aside, `--skip` adds to them, and any other option replaces the key of its name; so do the arguments
of `gradinspect.check()`. A baseline belongs to a program, so only the command reads that.
"""

import difflib
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradinspect.checks.findings import check_codes
from gradinspect.checks.registry import codes
from gradinspect.checks.verdict import Selection
from gradinspect.errors import GradInspectError
from gradinspect.units import brief
from gradinspect.user_files import read_text

NAME = "pyproject.toml"
MAX_STEPS = 10**18  # as on the command line
_TABLE = "[tool.gradinspect]"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a pyproject.toml says."""

    file: Path | None = None  # that says it
    select: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    steps: int | None = None
    baseline: Path | None = None


def selection_of(
    settings: Settings, select: Sequence[str] = (), skip: Sequence[str] = (), *, gradcheck: bool = False
) -> Selection:
    """Choose codes. NOTE [Which pyproject.toml].

    Args:
        settings: Those of the project.
        select: As the user asks for them here.
        skip: The same.
        gradcheck: Whether custom Functions are checked.

    Raises:
        GradInspectError: A code is unknown.
    """
    known = codes()
    only, more = check_codes(select, known), check_codes(skip, known)
    if only:
        return Selection(only, more, gradcheck)
    read = {}
    for key in ("select", "skip"):
        try:
            read[key] = check_codes(getattr(settings, key), known)
        except GradInspectError as error:
            raise GradInspectError(f"'{key}' in '{settings.file}': {error.message}", error.hint) from None
    return Selection(read["select"], (*read["skip"], *more), gradcheck)


def read_settings(folder: Path) -> Settings:
    """Read the settings for programs in a folder. NOTE [Which pyproject.toml].

    Raises:
        GradInspectError: They are wrong.
    """
    for one in (folder, *folder.parents):
        file = one / NAME
        table = _table(file) if _is_there(file) else None
        if table is not None:
            return _checked(table, file)
    return Settings()


def _table(file: Path) -> Any:  # noqa: ANN401  # whatever is written there
    """Return the table of a pyproject.toml; None if it has none.

    Raises:
        GradInspectError: It cannot be read.
    """
    try:
        document = tomllib.loads(read_text(file))
    except OSError as error:
        raise GradInspectError(f"'{file}' cannot be read: {error.strerror}.", "Check its permissions.") from None
    except (ValueError, RecursionError) as error:
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
            raise GradInspectError(
                f"'{key}' in {_TABLE} of '{file}' must be {expected}, not {brief(repr(value))}.", "Correct it."
            )
        read[key] = file.parent / accepted if isinstance(accepted, Path) else accepted
    return Settings(**read)


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # a folder above may not be readable
        return False


def _codes(value: object) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_STEPS else None


def _file_name(value: object) -> Path | None:
    return Path(value) if isinstance(value, str) and value and "\0" not in value else None


_KEYS: dict[str, tuple[str, Callable[[object], object]]] = {
    "select": ("a list of codes", _codes),
    "skip": ("a list of codes", _codes),
    "steps": ("a whole number of at least 1", _number),
    "baseline": ("the name of a file", _file_name),
}
