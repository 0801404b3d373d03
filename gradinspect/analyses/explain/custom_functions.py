"""A custom autograd.Function, read from its source without running it: its docstring, forward and backward."""

import ast
import inspect
from pathlib import Path

from gradinspect.errors import GradInspectError
from gradinspect.graph import Record
from gradinspect.syntax import parse, source_lines
from gradinspect.user_files import read_text


class CustomFunction(Record, frozen=True, kw_only=True):
    """One class of a source file."""

    name: str
    file: str
    line: int
    docstring: str = ""
    forward: str = ""  # source, without the indentation of the class
    backward: str = ""
    backward_line: int | None = None


def read_custom_function(path: Path, name: str) -> CustomFunction:
    """Find a class in a source file.

    Raises:
        GradInspectError: The file cannot be read, is not Python, or has no such class with a backward.
    """
    try:
        source = read_text(path)
        tree = parse(source)
    except OSError as error:
        raise GradInspectError(f"The file '{path}' cannot be read: {error.strerror}.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the parser has limits
        raise GradInspectError(f"The file '{path}' is not valid Python.") from None
    classes = {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _method(node, "backward")
    }
    found = classes.get(name)
    if found is None:
        known = f"It has {', '.join(sorted(classes))}." if classes else "It has none."
        raise GradInspectError(f"There is no autograd.Function '{name}' in '{path}'.", known)
    backward = _method(found, "backward")
    return CustomFunction(
        name=name,
        file=str(path),
        line=found.lineno,
        docstring=ast.get_docstring(found) or "",
        forward=_source(source, _method(found, "forward")),
        backward=_source(source, backward),
        backward_line=None if backward is None else backward.lineno,
    )


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == name), None)


def _source(source: str, function: ast.FunctionDef | None) -> str:
    if function is None:
        return ""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return inspect.cleandoc("\n" + "\n".join(source_lines(source)[first - 1 : function.end_lineno]))


def describe_place(function: CustomFunction) -> str:
    """Write where its backward is: `loss.py:12`."""
    return f"{function.file}:{function.backward_line or function.line}"
