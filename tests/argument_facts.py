"""What the logs of arguments say of a function that is called some times, as a step of a program is."""

from collections.abc import Callable
from typing import TypeVar

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.recording.recorder import Recorder

FactT = TypeVar("FactT")


def facts_of(kind: type[FactT], step: Callable[[], object], calls: int = 6, notes: int = 0) -> list[FactT]:
    """Call a step some times, and return the facts of a kind; what was not looked at is counted in notes."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(calls):
            step()
        assert len(list(recorder.errors.notes())) == notes
        return [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, kind)]
