"""The line that decides what a function does, when two runs of it did different things.

It is read from the source: the branch or loop that only one of the runs went into, or else what the function reads or
changes that need not be the same in the next run: a random number, the time, `requires_grad`, a list that it adds to.
"""

import ast
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import TypeAlias

from gradinspect.recording.source_structure import calls_in, contains, enclosing, first_line, last_line

Line: TypeAlias = tuple[CodeType, int]

_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Match, ast.Try)
_CHANGING = ("random.", "np.random.", "numpy.random.", "time.")  # torch's own random state is restored
_MUTATING = frozenset((
    "append", "extend", "insert", "add", "update", "pop", "popleft", "appendleft", "setdefault", "clear",
))  # fmt: skip


def decision(first: Sequence[Line], again: Sequence[Line]) -> Line | None:
    """Find the line that decided between two runs.

    Args:
        first: Where one run was when they parted: the innermost line, and those that called it.
        again: The same of the other run.
    """
    parted = _parting(first, again)
    if parted is None:
        return None
    code, one, other = parted
    branch = _branch(code.co_filename, one, other)
    if branch is not None:
        return code, branch
    return next(
        ((inner, found) for inner, line in first if (found := _changing(inner.co_filename, line)) is not None), None
    )


def _parting(first: Sequence[Line], again: Sequence[Line]) -> tuple[CodeType, int, int] | None:
    """Return the innermost function that both runs were in, and the line of each."""
    found = None
    for (code, one), (other_code, other) in zip(reversed(first), reversed(again), strict=False):
        if code is not other_code:
            break
        found = code, one, other
        if one != other:
            break
    return found


def _branch(file: str, one: int, other: int) -> int | None:
    """Find the innermost branch or loop with only one of two lines in one of its parts."""
    if one == other:
        return None
    inside = [*enclosing(file, one), *enclosing(file, other)]
    apart = [node for node in inside if isinstance(node, _BRANCHES) and _parts_of(node, one) != _parts_of(node, other)]
    return first_line(min(apart, key=lambda node: last_line(node) - first_line(node))) if apart else None


def _parts_of(node: ast.AST, line: int) -> frozenset[tuple[str, int]]:
    """Return in which parts of a statement a line is."""
    found = set()
    for field, value in ast.iter_fields(node):
        for number, part in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(part, ast.AST) and contains(part, line):
                found.add((field, number if field in ("cases", "handlers") else 0))
    return frozenset(found)


def _changing(file: str, line: int) -> int | None:
    """Find what the function around a line reads or changes that may differ in its next run."""
    function = next((node for node in enclosing(file, line) if isinstance(node, ast.FunctionDef | ast.Lambda)), None)
    if function is None:
        return None
    statements = sorted(_statements(function), key=first_line)
    return next((first_line(one) for one in statements if _may_differ(one, _local_names(function))), None)


def _local_names(function: ast.AST) -> set[str]:
    """Return the parameters of a function, and what it assigns: both are new in each run."""
    parts = list(ast.walk(function))
    shared = {name for part in parts if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}
    assigned = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return {part.arg for part in parts if isinstance(part, ast.arg)} | assigned - shared


def _statements(function: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that have no others inside."""
    for part in ast.walk(function):
        if isinstance(part, ast.stmt) and not hasattr(part, "body"):
            yield part


def _may_differ(statement: ast.stmt, local: set[str]) -> bool:
    calls = list(calls_in(statement))
    if any(call.startswith(_CHANGING) for call in calls):
        return True
    if any(isinstance(part, ast.Attribute) and part.attr == "requires_grad" for part in ast.walk(statement)):
        return True
    mutated = [call.rpartition(".")[0] for call in calls if call.rpartition(".")[2] in _MUTATING]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    kept = [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
    mutated += [ast.unparse(target.value) for target in kept]
    return any(name and name.split(".")[0].split("[")[0] not in local - {"self"} for name in mutated)
