"""What a program calls a module or an optimizer, and the line after which code can change it."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from torch import nn

from gradinspect.analyses.planning.changes import NamedPlace
from gradinspect.analyses.planning.code import can_be_written, part_of
from gradinspect.recording.frames import line_at, short_file_name, user_frames
from gradinspect.recording.names.names import module_paths
from gradinspect.recording.names.variables import local_variables, variables_in
from gradinspect.recording.source_text import line_of, lines_of
from gradinspect.syntax import parse


class Called(NamedTuple):
    """A line of the program that calls a module."""

    file: str
    line: int
    name: str  # of the module


def calls_of(wanted: object, frame: FrameType | None) -> tuple[Called, ...]:
    """Say where a module or an optimizer is called from, line by line outward, and by what name it is known there."""
    found = []
    for user in user_frames(frame):
        name = _name_in({**user.f_globals, **local_variables(user)}, wanted)
        if name:
            found.append(Called(user.f_code.co_filename, line_at(user), name))
    return tuple(found)


def _name_in(namespace: dict[str, object], wanted: object) -> str:
    """Name an object as a variable, or as a part of a model or of `self`; "" if it is neither."""
    named = [*namespace.items()]
    with suppress(AttributeError):  # without running its code
        own = object.__getattribute__(namespace.get("self"), "__dict__")
        named += [(f"self.{name}", value) for name, value in own.items()]
    for name, value in named:
        if value is wanted and can_be_written(name):
            return name
    return next(_parts_named(namespace, wanted), "")


def _parts_named(namespace: dict[str, object], wanted: object) -> Iterator[str]:
    """Yield the names of a module as a part of others, or of a list."""
    for variable in variables_in(namespace):
        if not isinstance(variable.value, nn.Module) or not can_be_written(variable.name):
            continue
        if variable.value is wanted:
            yield variable.name
        for path, part in module_paths(variable.value):
            if part is wanted and path:
                yield part_of(variable.name, path)


def place_of(calls: Sequence[Called], base_folder: Path, unnamed: str) -> NamedPlace:
    """Describe what is called by the innermost line that calls it where it is also assigned."""
    for called in calls:
        after = ready_after(called)
        if after is not None:
            end = _end_of(after)
            return NamedPlace(
                name=called.name,
                after=f"{short_file_name(called.file, base_folder)}:{end}",
                code=line_of(called.file, end),
                indent=_indent_of(next(iter(lines_of(called.file)[after.lineno - 1 : after.lineno]), "")),
            )
    return NamedPlace(name=calls[0].name if calls else unnamed)


def ready_after(called: Called) -> ast.stmt | None:
    """Find the last statement before a call that assigns the name, in a block that the call is in too."""
    file, line, name = called
    try:
        tree = parse("".join(lines_of(file)))
    except (SyntaxError, ValueError):
        return None
    found: ast.stmt | None = None
    block: list[ast.stmt] = tree.body
    while block:
        inner: list[ast.stmt] = []
        for statement in block:
            if statement.lineno <= line <= _end_of(statement):
                inner = [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.stmt)]
                break
            if statement.lineno > line:
                break
            if _assigns(statement, name):
                found = statement
        block = inner
    return found or _assigned_once(tree, line, name)


def _assigned_once(tree: ast.Module, line: int, name: str) -> ast.stmt | None:
    """Find the only statement of a class, around a line, that assigns an attribute: another method may do so."""
    around = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.lineno <= line <= _end_of(one)]
    if not around or not name.startswith("self."):
        return None
    assigned = [one for one in ast.walk(around[-1]) if isinstance(one, ast.Assign | ast.AnnAssign)]
    assigned = [one for one in assigned if _assigns(one, name)]
    return assigned[0] if len(assigned) == 1 else None


def _indent_of(line: str) -> int:
    """Return the indentation of a line, which may hold several statements: what follows it is not behind them."""
    return len(line) - len(line.lstrip())


def _end_of(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _assigns(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement, or one inside it, assigns a name of its own scope."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else getattr(node, "target", None)
        for target in targets if isinstance(targets, list) else [targets]:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            if any(isinstance(part, ast.AST) and ast.unparse(part) == name for part in parts):
                return True
        todo.extend(ast.iter_child_nodes(node))
    return False
