"""What surrounds a line in its source file: the scopes and decisions that it is inside of, read from its syntax.

Files are read through linecache, as tracebacks read them; a file that is not there, or is no Python, gives nothing.
"""

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

MAX_FILES = 32  # that are kept


def enclosing(file: str, line: int) -> list[ast.AST]:
    """List the statements and expressions that a line is part of, the innermost first."""
    tree = _tree(file)
    found: list[ast.AST] = []
    todo: list[ast.AST] = [] if tree is None else [tree]
    while todo:
        inside = [part for parent in todo for part in ast.iter_child_nodes(parent) if _contains(part, line)]
        found += inside
        todo = inside
    return found[::-1]


def first_line(node: ast.AST) -> int:
    """Return the line on which a statement begins, with its decorators."""
    lines: list[int] = [getattr(node, "lineno", 0), *(part.lineno for part in getattr(node, "decorator_list", ()))]
    return min(lines)


def last_line(node: ast.AST) -> int:
    """Return the line on which a statement ends."""
    end: int | None = getattr(node, "end_lineno", None)
    return first_line(node) if end is None else end


def calls_in(node: ast.AST) -> Iterator[str]:
    """Write what is called inside a statement: `random.random`, `cache.append`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func)


@lru_cache(maxsize=MAX_FILES)
def _tree(file: str) -> Any:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _contains(node: ast.AST, line: int) -> bool:
    return hasattr(node, "lineno") and first_line(node) <= line <= last_line(node)
