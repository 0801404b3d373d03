"""A notebook as a program: its code cells in order, without what only IPython understands.

NOTE [Magics]
A line such as `%matplotlib inline` or `!pip install x` is not Python. It is replaced by `pass`, so that lines keep
their numbers, and a note names it. Of a cell that begins with a magic of two percent signs, the body runs if the magic
only measures or captures Python; otherwise it may be another language, and the cell is left out. A cell that is Python
as it is stays as it is. What a cell asks of `get_ipython()` is left out in the same way.
"""

import __future__

import ast
import builtins
import json
import linecache
import re
import sys
from functools import reduce
from operator import or_
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from gradinspect.errors import GradInspectError
from gradinspect.runner.programs.cells import Cell
from gradinspect.syntax import source_lines
from gradinspect.units import brief, format_count
from gradinspect.user_files import read_text

_MAGIC = re.compile(r"^(\s*)(%[A-Za-z]|!|\?|[\w.]+\?{1,2}\s*$|[\w., ]+=\s*(!|%[A-Za-z]))")
_FUTURE = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
_OF_PYTHON = ("%%time", "%%timeit", "%%capture", "%%prun", "%%gradinspect")
MAX_NAMED = 3


class Notebook(NamedTuple):
    """The cells of a notebook, and what was left out."""

    cells: tuple[Cell, ...]
    left_out: tuple[str, ...]  # "cell 1: %matplotlib inline"


def is_notebook(path: Path) -> bool:
    """Return whether a file is a notebook, by its name."""
    return path.suffix.lower() == ".ipynb"


def read_notebook(path: Path) -> Notebook:
    """Compile the code cells of a notebook; their lines are those of `<cell 3>`, counted as the notebook shows them.

    Raises:
        GradInspectError: The file is not a notebook, or cannot be read.
    """
    cells, left_out = [], []
    future = 0  # what cells import from __future__ holds in those after them
    written = [cell for cell in _code_cells(path) if _source_of(cell).strip()]  # an empty cell is not counted
    for number, cell in enumerate(written, 1):
        source = _source_of(cell)
        text, magics = _without_magics(source)
        left_out += [f"cell {number}: {brief(magic, 60)}" for magic in magics]
        file = f"<cell {number}>"
        linecache.cache[file] = shown_in_tracebacks(source, file)
        codes = _compiled(text, file, future)
        if not isinstance(codes, Exception):
            future |= reduce(or_, (code.co_flags & _FUTURE for code in codes), 0)
        cells.append(Cell(number, source, text, codes, _may_raise(cell)))
    return Notebook(tuple(cells), tuple(left_out))


def _compiled(text: str, file: str, flags: int) -> tuple[CodeType, ...] | Exception:
    """Compile a cell in two parts if its last statement is an expression, whose value `sys.displayhook` is given."""
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        body = compile(text, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True).body
        has_value = bool(body) and isinstance(body[-1], ast.Expr) and not _is_quiet(text, body[-1])
        first, last = (body[:-1], body[-1:]) if has_value else (body, [])
        code = compile(ast.Module(first, []), file, "exec", flags, dont_inherit=True)
        flags |= code.co_flags & _FUTURE
        return (code, compile(ast.Interactive(last), file, "single", flags, dont_inherit=True)) if last else (code,)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error


def _is_quiet(text: str, last: ast.stmt) -> bool:
    """Return whether a semicolon follows a statement."""
    line = source_lines(text)[(last.end_lineno or 1) - 1].encode()
    return line[last.end_col_offset :].lstrip().startswith(b";")


def shown_in_tracebacks(source: str, file: str) -> tuple[int, None, list[str], str]:
    """Return what `linecache` holds of a source that is in no file: a line without an end would move the carets."""
    return len(source), None, [f"{line}\n" for line in source_lines(source)], file


def note_left_out(path: Path, left_out: tuple[str, ...]) -> None:
    """Say what of a notebook does not run."""
    if left_out:
        named = "; ".join(left_out[:MAX_NAMED]) + ("; ..." if len(left_out) > MAX_NAMED else "")
        print(f"note: {format_count(len(left_out), 'magic')} of '{path.name}' left out: {named}", file=sys.stderr)


def has_cells() -> bool:
    """Return whether a notebook was read."""
    return "<cell 1>" in linecache.cache


def display(*values: object) -> None:
    """Print what a notebook would show."""
    builtins.print(*values, sep="\n")


def _code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the code cells, also of the older formats that have worksheets.

    Raises:
        GradInspectError: The file is not a notebook, or cannot be read.
    """
    try:
        document = json.loads(read_text(path))
    except OSError as error:
        raise GradInspectError(f"The notebook '{path}' cannot be read: {error.strerror}.", "Check the file.") from None
    except (ValueError, RecursionError, SystemError):  # SystemError: json's errors are set aside, as all of our modules
        raise _no_notebook(path) from None
    sheets = document.get("worksheets", [document]) if isinstance(document, dict) else None
    if not isinstance(sheets, list) or not all(
        isinstance(one, dict) and isinstance(one.get("cells"), list) for one in sheets
    ):
        raise _no_notebook(path)
    cells = [cell for sheet in sheets for cell in sheet["cells"]]
    if not all(isinstance(cell, dict) for cell in cells):
        raise _no_notebook(path)
    return [cell for cell in cells if cell.get("cell_type") == "code"]


def _source_of(cell: dict[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _may_raise(cell: dict[str, Any]) -> bool:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return isinstance(tags, list) and "raises-exception" in tags


def _no_notebook(path: Path) -> GradInspectError:
    return GradInspectError(f"'{path}' is not a notebook.", "Save it again in Jupyter, or give a script.")


def _without_magics(source: str) -> tuple[str, list[str]]:
    """Replace what only IPython understands, and return it. NOTE [Magics]."""
    lines = source_lines(source)
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    indent = "" if first is None else lines[first][: -len(lines[first].lstrip())]
    lines = [line.removeprefix(indent) for line in lines]  # as IPython does
    magics = []
    if first is not None and lines[first].startswith("%%"):
        magics.append(lines[first].strip())
        lines[first] = ""
        if not magics[0].startswith(_OF_PYTHON):
            return "", magics
    if _is_python("\n".join(lines)):
        return "\n".join(lines), magics
    for index, line in enumerate(lines):
        found = _MAGIC.match(line)
        if found is not None:
            magics.append(line.strip())
            lines[index] = f"{found[1]}pass"
    return "\n".join(lines), magics


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
