"""Parse Python, in a process where other threads may parse too, and count its lines as Python does."""

import ast
import io

_TIMES = 20  # tried; another thread has to begin or end within each of them


def parse(source: str | bytes) -> ast.Module:
    """Parse a file or some statements.

    CPython 3.11 counts the depth of all threads in one place, so parsing fails if the collector lets another thread
    parse in between; then it is repeated. There is no lock, because a child that is forked meanwhile could not take it.

    Raises:
        SyntaxError: It is not Python. As `ast.parse` also ValueError, RecursionError, MemoryError.
        SystemError: Other threads were parsing each time.
    """
    for _ in range(_TIMES):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)


def source_lines(source: str) -> list[str]:
    """Split the text of a program into its lines, without their ends.

    `str.splitlines` also splits at a page break and at U+2028, which do not end a line of Python.
    """
    return [line.removesuffix("\n") for line in io.StringIO(source, newline=None)]


def parse_expression(source: str) -> ast.expr:
    """Parse an expression. Raises the same."""
    (statement,) = parse(source).body
    if not isinstance(statement, ast.Expr):
        raise SyntaxError(f"'{source}' is not an expression")  # noqa: TRY004  # as Python says it
    return statement.value
