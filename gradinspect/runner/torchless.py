"""Run a program beside which torch cannot be imported, so that it shows what it shows under python. No torch here."""

from gradinspect.runner.process_state import ProcessState
from gradinspect.runner.program import print_error, run_program
from gradinspect.source import Expression, Module, Script


class _NeverStopped:
    """Stands where `Stopper` is when there is something to stop for."""

    is_stopping = False

    def ended(self) -> None:
        """Do nothing."""


def run_without_torch(
    source: Script | Module | Expression, arguments: tuple[str, ...], process_state: ProcessState, error: BaseException
) -> str:
    """Run a program, or only show why torch cannot be imported where there is just an expression.

    Returns:
        How it failed, in words; "" when it did not.
    """
    if not isinstance(source, Expression):
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
