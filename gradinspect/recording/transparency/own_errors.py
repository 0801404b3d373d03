"""Errors of ours and limits while a program runs: it must not see them, and the report must say what they hid."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from gradinspect.errors import GradInspectError
from gradinspect.recording.frames import line_at, line_name, own_frame
from gradinspect.torch_api.patching.interruptions import pass_on_interruption
from gradinspect.units import format_count

_Found = TypeVar("_Found")
PassOver: TypeAlias = Callable[[str, str, int], object]  # `OwnErrors.pass_over` or `leave_out`


class OwnErrors:
    """Counts what could not be looked at, and names the first."""

    def __init__(self) -> None:
        """Start with none."""
        self.number = 0
        self._first = ""
        self._passed_over: Counter[tuple[str, str]] = Counter()

    def note(self, error: Exception) -> None:
        """Count one call that was not looked at; the line of the program that runs now is the one named.

        Raises:
            Exception: This one, if the program sent it.
        """
        pass_on_interruption(error)
        self.number += 1
        if not self._first:
            frame = own_frame(sys._getframe(1))
            place = "" if frame is None else f"{line_name(frame.f_code.co_filename, line_at(frame))}, "
            self._first = f"{place}{type(error).__name__}"

    def pass_over(self, what: str, why: str, number: int = 1) -> None:
        """Count what is not looked at because there is a limit.

        Args:
            what: Its kind, as one of it is called: "write to memory".
            why: The limit: "larger than 1.0 MiB".
            number: How many there are.
        """
        self._passed_over[what, why] += number

    def leave_out(self, what: str, why: str, number: int) -> None:
        """Count the same where it is looked for anew each time: what was counted before is among it."""
        self._passed_over[what, why] = max(self._passed_over[what, why], number)

    @property
    def hid_anything(self) -> bool:
        """Whether an error or a limit kept anything from being looked at."""
        return bool(self.number or self._passed_over)

    def guard(self, listener: Callable[..., Any]) -> Callable[..., None]:
        """Return a listener whose errors are noted here, and not raised in the program that caused the call."""

        @wraps(listener)
        def listen(*arguments: Any) -> None:
            try:
                listener(*arguments)
            except Exception as error:
                self.note(error)

        return listen

    def found(self, find: Callable[[], Iterable[_Found]]) -> Iterator[_Found]:
        """Yield what is found, up to an error of ours, which is noted."""
        try:
            yield from find()
        except GradInspectError:
            raise
        except Exception as error:
            self.note(error)

    def notes(self) -> Iterator[str]:
        """Say what was not looked at."""
        for (what, why), number in self._passed_over.items():
            yield f"Not checked: {format_count(number, what, _plural(what))}, {why}."
        if self.number:
            yield f"Not looked at: {format_count(self.number, 'call')} (first: {self._first})."


def _plural(what: str) -> str:
    """Write several of a kind: "tensors whose memory ..." for "tensor whose memory ..."."""
    noun, _, rest = what.partition(" ")
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{noun}{ending} {rest.replace('that is ', 'that are ')}"
