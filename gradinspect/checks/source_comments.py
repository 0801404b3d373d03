"""The statements of a source file with their comments, and which of them have run. Reads text, opens no file."""

import ast
import tokenize
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from gradinspect.syntax import parse

_BLOCKS = ("body", "orelse", "finalbody")  # fields of a node that are lists of statements
_LAYOUT = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_DAMAGED = (tokenize.TokenError, SyntaxError, ValueError)


class Statement(NamedTuple):
    """A statement, or the header of a compound one, with the comments that belong to it: line and text."""

    first: int
    last: int
    comments: list[tuple[int, str]]


def statements(lines: Sequence[str]) -> Iterator[Statement]:
    """Yield the statements of a file that have comments; one alone on its line belongs to what follows."""
    comments: list[tuple[int, str]] = []
    first = 0  # of the statement that has begun
    with suppress(*_DAMAGED):  # it was changed after Python read it
        for token in tokenize.generate_tokens(iter(lines).__next__):
            if token.type == tokenize.COMMENT:
                comments.append((token.start[0], token.string.rstrip()))
            elif token.type == tokenize.NEWLINE:
                if comments:
                    yield Statement(first or token.start[0], token.end[0], comments)
                comments, first = [], 0
            elif token.type not in _LAYOUT:
                first = first or token.start[0]
    if comments:
        yield Statement(comments[0][0], comments[-1][0], comments)


def line_comments(lines: Sequence[str]) -> dict[int, str]:
    """Return the comment of each line that has one."""
    return {line: text for statement in statements(lines) for line, text in statement.comments}


def lines_run(lines: Sequence[str], seen: Collection[int]) -> set[int]:
    """Return the lines of statements that have run.

    Statements of a block run in order, so what comes before one that was seen has run as well, even if nothing in it
    was seen. Of a compound statement this is true of its header.

    Args:
        lines: The text of a file.
        seen: Lines of it that were seen to run.
    """
    known = sorted(seen)
    ran = set(known)
    try:
        tree = parse("".join(lines))
    except (*_DAMAGED, RecursionError, MemoryError):
        return ran
    for block in _blocks(tree):
        reached = [index for index, statement in enumerate(block) if _has_line(known, statement)]
        for statement in block[: reached[-1] + 1 if reached else 0]:
            ran.update(range(_first(statement), _end_of_header(statement) + 1))
    return ran


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _has_line(known: Sequence[int], statement: ast.stmt) -> bool:
    position = bisect_left(known, _first(statement))
    return position < len(known) and known[position] <= (statement.end_lineno or statement.lineno)


def _first(statement: ast.stmt) -> int:
    """Return the first line; a definition begins with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _end_of_header(statement: ast.stmt) -> int:
    """Return the last line of a simple statement, or of what comes before the body of a compound one."""
    body: list[ast.stmt] | None = getattr(statement, "body", None)
    if body:
        return max(statement.lineno, _first(body[0]) - 1)
    cases: list[ast.match_case] | None = getattr(statement, "cases", None)
    return statement.lineno if cases else statement.end_lineno or statement.lineno
