"""The context manager or decorator around a line that disables gradients.

torch is told only when gradients are switched off, which a decorator does inside torch, and inference mode nowhere.
"""

import ast
from types import CodeType

from gradinspect.recording.frames import FrameTable
from gradinspect.recording.source_structure import enclosing

_SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled")


def scope_of(frames: FrameTable, number: int | None) -> tuple[CodeType, int] | None:
    """Find the innermost scope that disables gradients: around a line, or around one that called its function.

    Args:
        frames: Has the lines.
        number: The line.
    """
    for code, line in () if number is None else frames.chain(number):
        for node in enclosing(code.co_filename, line):
            expressions = _scopes(node)
            found = next((one for one in expressions if any(name in ast.unparse(one) for name in _SWITCHES)), None)
            if found is not None:
                return code, found.lineno
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                break  # where it is defined says nothing of where it is called
    return None


def _scopes(node: ast.AST) -> list[ast.expr]:
    """List the context managers of a `with`, or the decorators of a function."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.context_expr for item in node.items]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return list(node.decorator_list)
    return []
