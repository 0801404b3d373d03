"""What is said of optimizers whose state is a gradient itself, on facts made by hand."""

import pytest

from gradinspect.checks.facts.training import KeptGradient
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame

STEP = Frame(file="train.py", line=30, code="optimizer.step()")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ('state["v"] = p.grad', "Keep a copy at optim.py:9: state['v'] = p.grad.clone()."),
        ('state["v"] = grad', "Keep a copy at optim.py:9: state['v'] = grad.clone()."),
        ('state["v"] = p.grad.detach()', "Keep a copy at optim.py:9: call clone() on the gradient that becomes 'v'."),
        (None, "Keep a copy at train.py:30: call clone() on the gradient that becomes 'v'."),
    ],
)
def test_the_assignment_is_written_with_a_copy(code: str | None, remedy: str) -> None:
    """Where its value is a name; the step stands for a line that is not known."""
    kept = None if code is None else Frame(file="optim.py", line=9, code=code)
    (finding,) = findings_on(KeptGradient(optimizer="Momentum", key="v", num_steps=3, kept=kept, step=STEP))

    assert finding.code == "GI388"
    assert "After each of the last 3 steps, the state 'v' of Momentum was the tensor in .grad itself." in finding.text
    assert finding.remedy == remedy
