"""One of several calls of a function on a line, as the line writes it."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.graphs import FirstNonfinite
from gradinspect.syntax import parse
from gradinspect.units import format_ordinal

_LONGEST = 60  # characters of a call that a sentence quotes
_DIVISIONS = ("truediv", "rtruediv", "div")


def written_call(first: FirstNonfinite) -> str:
    """Write `log`, or `torch.log(q), the 2nd of 2 calls of log` if its line makes several.

    A line that is only a part of a statement, or in which a condition chooses, does not say which one it was.
    """
    if first.num_alike == 1:
        return first.op
    counted = f"the {format_ordinal(first.number)} of {first.num_alike:,} calls of {first.op}"
    texts = [] if first.made is None else list(_calls(first.made.code, first.op))
    if not texts or first.num_alike % len(texts):
        return counted
    text = texts[(first.number - 1) % len(texts)]
    return f"{text}, {counted}" if len(text) <= _LONGEST else counted


def _calls(code: str, name: str) -> Iterator[str]:
    """Yield the calls of a function on a line, in the order in which they are made: by where they end."""
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.BinOp) and _is_of(node, name)]
    for node in sorted(found, key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0)):
        yield ast.get_source_segment(code, node) or ""


def _is_of(node: ast.Call | ast.BinOp, name: str) -> bool:
    if isinstance(node, ast.BinOp):
        return name in _DIVISIONS and isinstance(node.op, ast.Div)
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return bool(called.strip("_") == name)
