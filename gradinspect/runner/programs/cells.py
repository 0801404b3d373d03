"""Run the cells of a notebook, as IPython would.

NOTE [Cells as IPython runs them]
A cell may await. As in a kernel, all cells of such a notebook then run within one event loop, and what a task has to do
goes on between them; other notebooks run without a loop, so that `asyncio.run` works. A cell with the tag
`raises-exception` may fail, and the next one runs; a cell that is not Python fails when it is its turn.
Source: nbclient/client.py; IPython/core/interactiveshell.py `run_code`, IPython 9.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from gradinspect.units import brief

BETWEEN_CELLS_S = 0.01  # what a kernel takes to fetch the next one
GoOn: TypeAlias = Callable[[BaseException], None]


class Cell(NamedTuple):
    """A code cell."""

    code: CodeType | Exception  # or why it is not Python
    may_raise: bool  # the notebook goes on after an error

    @property
    def awaits(self) -> bool:
        """Whether it awaits outside of any function."""
        return isinstance(self.code, CodeType) and bool(self.code.co_flags & inspect.CO_COROUTINE)


def run_cells(cells: Sequence[Cell], namespace: dict[str, Any], go_on: GoOn) -> None:
    """Run cells, one after the other. NOTE [Cells as IPython runs them].

    Args:
        cells: Those of one notebook.
        namespace: Their names.
        go_on: Called with the error of a cell that may raise; raises it if nothing may run after it.
    """
    if any(cell.awaits for cell in cells):
        _run_in_loop(cells, namespace, go_on)
        return
    for cell in cells:
        with _errors_of(cell, go_on):
            _start(cell, namespace)


def _run_in_loop(cells: Sequence[Cell], namespace: dict[str, Any], go_on: GoOn) -> None:
    import asyncio  # noqa: PLC0415  # a program that does not need it does not find it imported

    async def run_all() -> Exception | None:
        try:
            for cell in cells:
                with _errors_of(cell, go_on):
                    waiting = _start(cell, namespace)
                    if waiting is not None:
                        await waiting
                if len(asyncio.all_tasks()) > 1:
                    await asyncio.sleep(BETWEEN_CELLS_S)
        except Exception as error:
            return error  # so that no frame of the loop is in its traceback
        return None

    with asyncio.Runner() as runner:
        failed = runner.run(run_all())
    if failed is not None:
        raise failed


def _start(cell: Cell, namespace: dict[str, Any]) -> Any:
    """Run a cell; one that awaits has only begun, and what is returned must be awaited."""
    if isinstance(cell.code, Exception):
        raise cell.code
    return eval(cell.code, namespace)  # noqa: S307  # the user's program


@contextmanager
def _errors_of(cell: Cell, go_on: GoOn) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if not cell.may_raise:
            raise
        go_on(error)


class Shell:
    """What `get_ipython()` returns: its magics and commands are left out, and said to be. NOTE [Magics]."""

    def __init__(self, user_ns: dict[str, Any]) -> None:
        """Keep the names of the notebook."""
        self.user_ns = user_ns

    def run_line_magic(self, name: str, line: str = "", *_options: object) -> None:
        """Leave out a magic."""
        _say_left_out(f"%{name} {line}")

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:  # noqa: ARG002  # as IPython's
        """Leave out a magic, and its cell."""
        _say_left_out(f"%%{name} {line}")

    def magic(self, line: str) -> None:
        """Leave out a magic."""
        _say_left_out(f"%{line}")

    def system(self, command: str) -> None:
        """Leave out a command."""
        _say_left_out(f"!{command}")


def _say_left_out(what: str) -> None:
    print(f"note: left out: {brief(what.strip(), 60)}", file=sys.stderr)
