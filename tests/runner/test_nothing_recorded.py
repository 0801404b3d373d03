"""The sentence for a run in which nothing was recorded."""

from pathlib import Path

from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts
from gradinspect.runner.nothing_recorded import hidden_by_errors
from gradinspect.source import Script


def test_what_errors_of_ours_have_hidden_is_said() -> None:
    """And not that the program calls nothing."""
    request = Request(source=Script(Path("train.py")), label="train.py")
    hidden = ["Not looked at: 3 calls (first: train.py:9, KeyError)."]

    assert hidden_by_errors(request, CallCounts(), hidden) is None
    assert hidden_by_errors(request, CallCounts(backwards=3), ()) is None
    assert str(hidden_by_errors(request, CallCounts(backwards=3), hidden)) == (
        "'train.py' called backward 3 times, and gradinspect could look at none of these calls. "
        "Not looked at: 3 calls (first: train.py:9, KeyError). Please report it to its developers."
    )
