"""Run a program that prevents torch from being imported, so that it fails as with python. Imports no torch."""

import sys

from gradinspect.runner.process_state import ProcessState
from gradinspect.runner.programs.program import print_error, run_program
from gradinspect.source import Expression, Module, Script

# With this, torch refuses another import, and the program's would not fail for its own reason.
# Source: torch/__init__.py, torch 2.15.
_STARTED = "_torch_import_started"


class _NeverStopped:
    """Stands in for `Stopper`: nothing here stops the program."""

    is_stopping = False

    def ended(self) -> None:
        """Do nothing."""


def run_without_torch(
    source: Script | Module | Expression, arguments: tuple[str, ...], process_state: ProcessState, error: BaseException
) -> str:
    """Run a program; for an expression, only show why torch cannot be imported.

    Returns:
        The name of the error that it failed with; "" if it did not fail.
    """
    if not isinstance(source, Expression):
        vars(sys).pop(_STARTED, None)
        process_state.start_program(source)
        try:
            end = run_program(source, arguments, _NeverStopped())
        finally:
            process_state.restore()
        if end.error is None:
            return ""
        error = end.error
    print_error(error)
    return type(error).__name__
