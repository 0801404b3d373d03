"""Run a program beside which torch cannot be imported, so that it shows what it shows under python. No torch here."""

from gradinspect.capture.program import print_error, run_program
from gradinspect.capture.source import Expression, Module, Script
from gradinspect.capture.surroundings import Surroundings


class _NeverStopped:
    """Stands where `Stopper` is when there is something to stop for."""

    is_stopping = False

    def ended(self) -> None:
        """Do nothing."""


def run_without_torch(
    source: Script | Module | Expression, arguments: tuple[str, ...], surroundings: Surroundings, error: BaseException
) -> str:
    """Run a program, or only show why torch cannot be imported where there is just an expression.

    Returns:
        How it failed, in words; "" when it did not.
    """
    if not isinstance(source, Expression):
        surroundings.start_program(source)
        try:
            ending = run_program(source, arguments, _NeverStopped())
        finally:
            surroundings.come_home()
        if ending.error is None:
            return ""
        error = ending.error
    print_error(error)
    return type(error).__name__
