"""Variables that are assigned anew before anything has read them: `loss = a`, and then `loss = b`.

NOTE [Replaced unread]
What nothing uses ends at the operator that made it, but the line to change is the one that threw it away. The source
says which: the next assignment of the same variable in its function, if nothing in between reads it, or the statement
itself in a loop that does not read it. A variable that an inner function reads, or that another branch assigns, is left
alone, and so is an attribute, which another method may read.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from gradinspect.recording.frames import FrameTable, is_own_file
from gradinspect.recording.source_structure import contains, enclosing, last_line, whole_tree

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BRANCHES = (ast.If, ast.Try, ast.Match)


class ReplacedVariable(NamedTuple):
    """A variable, with the frames of where it got the value that nothing reads, and of where it gets the next one."""

    name: str
    assigned: int
    replaced: int


def replaced_unread(frames: FrameTable, number: int | None) -> ReplacedVariable | None:
    """Return the variable that had what a call returned, if it was assigned anew before it was read.

    Args:
        frames: The lines that ran.
        number: Of the line that called the operator.
    """
    for code, line in () if number is None else frames.chain(number):
        file = code.co_filename
        around = enclosing(file, line) if is_own_file(file) else []
        statement = next((one for one in around if isinstance(one, ast.stmt)), None)
        match statement:
            case ast.Return():
                continue  # the line that called the function has its value
            case ast.Assign(targets=[ast.Name(name)]):
                scope = next((one for one in around if isinstance(one, _FUNCTIONS)), whole_tree(file))
                after = _replacing(scope, around, statement, name)
                lines = () if after is None else (statement.lineno, after)
                return ReplacedVariable(name, *(frames.number_at(code, one) for one in lines)) if lines else None
            case _:
                return None
    return None


def _replacing(scope: ast.AST, around: list[ast.AST], statement: ast.Assign, name: str) -> int | None:
    """Return the line of the assignment that replaces the value of another one unread."""
    if any(_reads(inner, name) for inner in ast.walk(scope) if isinstance(inner, _FUNCTIONS) and inner is not scope):
        return None
    after = sorted((one for one in _assigning(scope, name) if one.lineno > last_line(statement)), key=_position)
    loop = next((one for one in around if isinstance(one, _LOOPS)), None)
    if after and (loop is None or contains(loop, after[0].lineno)):
        later = after[0]
        is_read = any(last_line(statement) < line <= last_line(later) for line in _reads(scope, name))
        return None if is_read or _is_other_branch(around, statement, later) else later.lineno
    is_lost = loop is not None and not any(contains(loop, line) for line in _reads(loop, name))
    return statement.lineno if is_lost else None


def _assigning(scope: ast.AST, name: str) -> Iterator[ast.stmt]:
    """Yield the statements that give a variable another value."""
    for one in ast.walk(scope):
        if isinstance(one, ast.Assign):
            targets = [part for target in one.targets for part in ast.walk(target)]
            if any(isinstance(part, ast.Name) and part.id == name for part in targets):
                yield one


def _reads(node: ast.AST, name: str) -> list[int]:
    """List the lines that read a variable, as `x += 1` and `del x` do too."""
    found = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name]
    changed = [one.target for one in ast.walk(node) if isinstance(one, ast.AugAssign)]
    return [part.lineno for part in found if not isinstance(part.ctx, ast.Store) or part in changed]


def _is_other_branch(around: list[ast.AST], first: ast.stmt, later: ast.stmt) -> bool:
    """Return whether a decision lets only one of two statements run."""
    decisions = [one for one in around if isinstance(one, _BRANCHES) and contains(one, later.lineno)]
    return any(_branch_of(one, first.lineno) != _branch_of(one, later.lineno) for one in decisions)


def _branch_of(decision: ast.AST, line: int) -> str | int | None:
    for number, case in enumerate(getattr(decision, "cases", ())):
        if contains(case, line):
            return number
    for field, part in ast.iter_fields(decision):
        if isinstance(part, list) and any(contains(one, line) for one in part if isinstance(one, ast.AST)):
            return field
    return None


def _position(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset
