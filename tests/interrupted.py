"""An exception of a signal handler at each place of our code where Python runs handlers."""

import dis
import inspect
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

RUNS_HANDLERS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"}


class TimeIsUpError(Exception):
    """What a time limit raises."""


def interrupted(call: Callable[[Callable[..., Any]], None], place: int, *tested: ModuleType) -> bool:
    """Call a function, raise at the n-th place of some modules, and return whether there are so many.

    Args:
        call: It gets the trace function, which it may take away and set again.
        place: After how many instructions that run handlers.
        tested: The modules.
    """
    before = sys.gettrace()
    trace = _raises_at(place, {inspect.getfile(one) for one in tested})
    try:
        sys.settrace(trace)
        call(trace)
    except TimeIsUpError:
        return True
    finally:
        sys.settrace(before)
    return False


def _raises_at(place: int, files: set[str]) -> Callable[..., Any]:
    number = 0
    last: dict[FrameType, str] = {}

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal number
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event in {"call", "opcode"}:
            number += event == "call" or last.get(frame) in RUNS_HANDLERS
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if number == place:
                number += 1
                raise TimeIsUpError
        return trace

    return trace
