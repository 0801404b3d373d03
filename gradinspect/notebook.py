"""The magic of notebooks: `%load_ext gradinspect`, then `%%gradinspect check` as the first line of a cell."""

from collections.abc import Callable
from typing import Any, Final

from gradinspect.api.answers import memory
from gradinspect.errors import GradInspectError

VERBS: Final = ("trace", "check", "memory")
_HOW: Final = f"Write one of: {', '.join(f'%%gradinspect {verb}' for verb in VERBS)}."


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401  # IPython's shell; IPython need not be installed
    """Register the magic; IPython calls it for `%load_ext gradinspect`."""

    def gradinspect(line: str, cell: str) -> object:
        """Run a cell and return what was seen: trace a Graph, memory its Memory, check Findings."""
        try:
            number = len(shell.user_ns.get("In", ())) - 1
            return _seen(line.split(), lambda: _run(shell, cell, number), f"cell {number}")
        except GradInspectError as error:
            print(f"gradinspect: {error}")  # a traceback would say no more
            return None

    shell.register_magic_function(gradinspect, "cell")


def _run(shell: Any, cell: str, number: int) -> bool:  # noqa: ANN401  # as above
    """Run the lines below the magic, under the numbers of their cell and lines; IPython has counted on already."""
    count = shell.execution_count
    shell.execution_count = number
    try:
        return bool(shell.run_cell(f"#\n{cell}").success)
    finally:
        shell.execution_count = count


def _seen(words: list[str], run: Callable[[], bool], label: str) -> object:
    """Run a cell, and return what a verb asks for.

    Raises:
        GradInspectError: There is no such verb, or the cell computes nothing that can be shown.
    """
    # ruff: noqa: PLC0415  # torch, only when it is asked for
    if len(words) != 1 or words[0] not in VERBS:
        raise GradInspectError(f"'%%gradinspect {' '.join(words)}' is not known.", _HOW)
    if words[0] == "check":
        from gradinspect.api.live.checking import check_once

        return check_once(run, label)
    from gradinspect.api.live.recording import MOST_GRAPHS, Recording

    with Recording(None, MOST_GRAPHS, label=label) as recording:
        success = run()
    if not success and not recording.graphs:
        return None  # its error was shown
    return recording.graph if words[0] == "trace" else memory(recording.graph)
