"""Keep a stop out of what Python prints of errors that nothing has caught.

asyncio reports a task whose error was never asked for, and Python one that was raised in `__del__`. Without us the
program would have gone on there, so a stop, and what follows from it, as a task that is never finished, is left out.
"""

import sys
from collections.abc import Callable
from typing import Any


def leave_out_stops(is_stop: Callable[[BaseException | None], bool]) -> None:
    """Print no stop from now on, until the process ends: tasks and objects are freed as late as at exit."""
    show: Any = sys.unraisablehook

    def show_others(unraisable: Any) -> None:
        if not is_stop(unraisable.exc_value):
            show(unraisable)

    sys.unraisablehook = show_others
    loops: Any = sys.modules.get("asyncio.base_events")
    if loops is None:
        return
    report = loops.BaseEventLoop.call_exception_handler

    def report_others(loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")  # without one: a task is destroyed that was not finished
        if error is not None and not is_stop(error):
            report(loop, context)

    loops.BaseEventLoop.call_exception_handler = report_others
