"""Which of several calls on a line made the first NaN."""

import pytest

from gradinspect.checks.facts.graphs import FirstNonfinite
from gradinspect.checks.rules.gradients.written_calls import written_call
from gradinspect.graph import Frame


def written(code: str, op: str, number: int, num_alike: int) -> str:
    """Write one of the calls of a line."""
    made = Frame(file="train.py", line=3, code=code)
    return written_call(FirstNonfinite(op=op, is_nan=True, made=made, number=number, num_alike=num_alike))


def test_a_call_that_is_alone_needs_no_words() -> None:
    """Nor does one of an unknown line."""
    assert written("y = x.log()", "log", 1, 1) == "log"
    assert written_call(FirstNonfinite(op="log", is_nan=True, number=2, num_alike=2)) == "the 2nd of 2 calls of log"


@pytest.mark.parametrize(
    ("code", "op", "number", "text"),
    [
        ("loss = -(y * torch.log(p) + (1 - y) * (1 - p).log()).mean()", "log", 1, "torch.log(p)"),
        ("loss = -(y * torch.log(p) + (1 - y) * (1 - p).log()).mean()", "log", 2, "(1 - p).log()"),
        ("y = log(log(x) + b.log_())", "log", 2, "b.log_()"),
        ("y = log(log(x) + b.log_())", "log", 3, "log(log(x) + b.log_())"),
        ("y = a / b + c / (d / e)", "truediv", 2, "d / e"),
        ("y = a / b + c / (d / e)", "truediv", 3, "c / (d / e)"),
    ],
)
def test_calls_are_counted_as_they_are_made(code: str, op: str, number: int, text: str) -> None:
    """An inner call before the outer one."""
    assert written(code, op, number, code.count(op) if op == "log" else 3).startswith(f"{text}, the ")


def test_a_line_that_runs_again_and_again() -> None:
    """Each time it makes the same calls."""
    assert written("h = h.log() + x.log()", "log", 4, 6) == "x.log(), the 4th of 6 calls of log"


@pytest.mark.parametrize(
    "code",
    [
        "- torch.log(p)) + torch.log(q",  # a part of a statement
        "y = a.log() + (b.log() if flag else c.log())",  # two of three are made
        "y = f(x)",
        f"y = x.log() + {'x' * 60}.log()",
        "",
    ],
)
def test_a_line_that_does_not_tell_which(code: str) -> None:
    """What is known is said."""
    assert written(code, "log", 2, 2) == "the 2nd of 2 calls of log"
