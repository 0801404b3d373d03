"""Hand engine calls to an observer.

NOTE [Where calls are taken]
This file runs no program. An observer walks over frames from within `on_call`, outward to the program's, and such a
walk ends at a file that runs one (`RUNNERS`).
"""

from collections.abc import Callable
from typing import Any

from gradinspect.graph import CallKind
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run


class ObservedCalls:
    """Passes the calls of one run on, from when it has begun."""

    def __init__(self, reached: Callable[[], None] | None = None, *, is_looking: bool = True) -> None:
        """Prepare.

        Args:
            reached: Called for each call, before the observer.
            is_looking: Whether calls are passed on; it may change.
        """
        self.is_looking = is_looking
        self._reached = reached
        self._run: Run | None = None
        self._observer: Observer[Any] | None = None

    def begin(self, run: Run, observer: Observer[Any]) -> None:
        """Pass calls of a run on from here."""
        self._run, self._observer = run, observer

    def take(self, call: EngineCall) -> CallEnd | None:
        """Call the observer; an error of ours is stored, because it must not reach the user's program."""
        run, observer = self._run, self._observer
        if run is None or observer is None or not self.is_looking:
            return None
        if self._reached is not None:
            self._reached()
        if run.problem is None:
            try:
                return observer.on_call(call)
            except Exception as error:
                run.problem = error
        run.stop(call.caller)
        return None

    def missed(self, kind: CallKind) -> None:
        """Pass on that a call is not observed."""
        if self._observer is not None:
            self._observer.missed(kind)
