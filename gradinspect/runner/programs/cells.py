"""Run the cells of a notebook, as IPython would.

NOTE [Cells as IPython runs them]
A cell may await. As in a kernel, all cells of such a notebook then run within one event loop, and what a task has to do
goes on between them; other notebooks run without a loop, so that `asyncio.run` works. A cell with the tag
`raises-exception` may fail, and the next one runs; a cell that is not Python fails when it is its turn. The value of an
expression at the end of a cell is kept in `_`, `_3` and `Out[3]`, and is not printed. A cell as written is kept in
`_i3` and, once the next one runs, in `_i`; as it runs in `In[3]`, without the calls that IPython makes of magics.
Source: nbclient/client.py; IPython/core/interactiveshell.py `run_code`, displayhook.py `update_user_ns` and history.py
`store_inputs`, IPython 9.
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

    number: int
    source: str  # as written
    text: str  # as it runs
    codes: tuple[CodeType, ...] | Exception  # that of its last expression for itself; or why it is not Python
    may_raise: bool  # the notebook goes on after an error

    @property
    def awaits(self) -> bool:
        """Whether it awaits outside of any function."""
        codes = () if isinstance(self.codes, Exception) else self.codes
        return any(code.co_flags & inspect.CO_COROUTINE for code in codes)


class _History:
    """Keeps the texts of cells and, as `sys.displayhook`, their values. NOTE [Cells as IPython runs them]."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._number = 0  # of the cell that runs
        self._names = namespace
        self._last = dict.fromkeys(("_", "__", "___"), "")
        self._values: dict[int, Any] = {}
        self._texts = [""]  # none has the number 0
        self._written = [""] * 3  # newest first
        namespace.update(self._last, Out=self._values, _oh=self._values, In=self._texts, _ih=self._texts)
        namespace.update(dict.fromkeys(("_i", "_ii", "_iii"), ""))

    def begin(self, cell: Cell) -> None:
        """Keep the text of a cell that runs now."""
        self._number = cell.number
        source = cell.source.rstrip("\n")
        self._texts.append(cell.text.strip("\n"))
        self._names.update(zip(("_i", "_ii", "_iii"), self._written, strict=True))
        self._names[f"_i{cell.number}"] = source
        self._written = [source, *self._written[:2]]

    def __call__(self, value: Any) -> None:
        if value is None or value is self._values:
            return
        is_free = all(self._names.get(name, was) is was for name, was in self._last.items())  # not of the program
        self._last = {"_": value, "__": self._last["_"], "___": self._last["__"]}
        if is_free:
            self._names.update(self._last)
        self._names[f"_{self._number}"] = self._values[self._number] = value


def run_cells(cells: Sequence[Cell], namespace: dict[str, Any], go_on: GoOn) -> None:
    """Run cells, one after the other. NOTE [Cells as IPython runs them].

    Args:
        cells: Those of one notebook.
        namespace: Their names.
        go_on: Called with the error of a cell that may raise; raises it if nothing may run after it.
    """
    history, before = _History(namespace), sys.displayhook
    sys.displayhook = history
    try:
        if any(cell.awaits for cell in cells):
            _run_in_loop(cells, namespace, history, go_on)
            return
        for cell in cells:
            with _errors_of(cell, go_on):
                for _ in _parts(cell, namespace, history):
                    pass
    finally:
        if sys.displayhook is history:
            sys.displayhook = before


def _run_in_loop(cells: Sequence[Cell], namespace: dict[str, Any], history: _History, go_on: GoOn) -> None:
    import asyncio  # noqa: PLC0415  # a program that does not need it does not find it imported

    async def run_all() -> Exception | None:
        try:
            for cell in cells:
                with _errors_of(cell, go_on):
                    for waiting in _parts(cell, namespace, history):
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


def _parts(cell: Cell, namespace: dict[str, Any], history: _History) -> Iterator[Any]:
    """Run the parts of a cell; one that awaits has only begun, and what is yielded must be awaited."""
    history.begin(cell)
    if isinstance(cell.codes, Exception):
        raise cell.codes
    for code in cell.codes:
        yield eval(code, namespace)  # noqa: S307  # the user's program


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
