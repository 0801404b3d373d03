"""A run in a copy of this process: what it sends when the program fails."""

from pathlib import Path

import msgspec
import pytest

from gradinspect.cli.running import forked_runs, questions
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.errors import ScriptFailedError
from gradinspect.request import Request
from gradinspect.source import Script


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_device_that_the_copy_cannot_use_is_named(monkeypatch: pytest.MonkeyPatch, *, is_lost: bool) -> None:
    """In the place of torch's own error, which speaks of a start method that the program has not chosen."""

    def failing(*_args: object) -> None:
        raise ScriptFailedError("RuntimeError: Cannot re-initialize the device in forked subprocess", 3)

    sent: list[bytes] = []
    monkeypatch.setattr(forked_runs, "device_is_lost", lambda: is_lost)
    monkeypatch.setattr(ForkedRuns, "_deliver", failing)
    request = Request(source=Script(Path("train.py")), label="train.py")
    ForkedRuns.__new__(ForkedRuns)._in_child(questions.step_memory(1), request, sent.append)
    found = msgspec.json.decode(sent[0][1:])

    assert sent[0].startswith(b"-")
    assert ("something had used it before" in found["message"]) == is_lost
    assert ("fit --real" in found.get("hint", "")) == is_lost
    assert found.get("exit_code", 0) == (0 if is_lost else 3)
