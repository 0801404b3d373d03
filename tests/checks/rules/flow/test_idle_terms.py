"""What is said of a term of a loss that reaches only what another optimizer holds."""

from gradinspect.checks.facts.values import IdleTerm
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def test_the_line_that_cut_it_off_is_named() -> None:
    """With both optimizers, and what helps."""
    cut, term, backward = (Frame(file="gan.py", line=line, code="...") for line in (5, 6, 9))
    (finding,) = findings_on(
        IdleTerm(op="detach", cause="detach", optimizer="opt_g", other="opt_d", cut=cut, term=term, backward=backward)
    )

    assert finding.text == (
        "The term of the loss that gan.py:6 computes reaches nothing that opt_g updates: detach() stops gradient flow. "
        "Its gradients go to what opt_d holds, which does not step before the next backward."
    )
    assert finding.remedy == "Remove detach() at gan.py:5 if this path should train."
    assert [(place.role, place.line) for place in finding.places] == [("detached", 5), ("term", 6), ("backward", 9)]
