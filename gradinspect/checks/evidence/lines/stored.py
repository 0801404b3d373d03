"""The line that keeps what another one made, for longer than its function runs: `state["carry"] = carry`."""

import ast
from collections.abc import Iterator
from pathlib import Path

from gradinspect.checks.facts.backward_calls import StoredAt, StoredLine
from gradinspect.graph import Frame
from gradinspect.recording.frames import FrameTable, is_own_file, short_file_name
from gradinspect.recording.source_structure import enclosing, function_or_file
from gradinspect.recording.source_text import line_of

_ADDING = ("append", "appendleft", "add", "put", "push", "insert", "setdefault")


def storing(frames: FrameTable, base_folder: Path) -> StoredAt:
    """Return a function that finds where the function of a line keeps what that line assigns.

    Args:
        frames: The lines that ran, which know their files.
        base_folder: Files below it are named relative to it.
    """

    def stored_at(frame: Frame) -> StoredLine | None:
        paths = {file for file, _ in frames.lines() if is_own_file(file)}
        file = next((one for one in sorted(paths) if short_file_name(one, base_folder) == frame.file), None)
        found = None if file is None else next(_stores(file, frame.line), None)
        if file is None or found is None:
            return None
        statement, name = found
        code = line_of(file, statement.lineno)
        return StoredLine(name, Frame(file=frame.file, line=statement.lineno, function=frame.function, code=code))

    return stored_at


def _stores(file: str, line: int) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements that keep what a line assigns, with the name of what they keep."""
    statement = next((one for one in enclosing(file, line) if isinstance(one, ast.stmt)), None)
    if not isinstance(statement, ast.Assign):
        return
    targets = [part for target in statement.targets for part in ast.walk(target)]
    names = {part.id for part in targets if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for one in ast.walk(function_or_file(file, line)):
        name = _kept(one)
        if isinstance(one, ast.stmt) and name in names and one.lineno >= statement.lineno:
            yield one, str(name)


def _kept(statement: ast.AST) -> str | None:
    """Return the variable that a statement puts into an attribute, a dict or a list."""
    match statement:
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=ast.Name(name)):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr), args=[*_, ast.Name(name)])) if attr in _ADDING:
            return name
    return None
