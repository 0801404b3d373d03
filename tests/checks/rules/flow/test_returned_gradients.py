"""What is said of gradients that were returned only, on facts made by hand."""

from gradinspect.checks.facts.values import MissingGradient, NoticedAt, SameCause
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame

GRAD = Frame(file="train.py", line=9, code="grads = torch.autograd.grad(loss, params)")
STEP = Frame(file="train.py", line=11, code="opt.step()")


def test_the_step_and_what_returned_them_are_named() -> None:
    """And what to do in place of it."""
    noticed = NoticedAt(kind="step", frame=STEP, by="opt")
    group = SameCause(
        tuple(MissingGradient(name=name, kind="returned", noticed=noticed, backward=GRAD) for name in ("w", "b"))
    )
    (finding,) = findings_on(group)

    assert finding.code == "GI310"
    assert finding.text.startswith("train.py:9 computes gradients of w and b and returns them, but no .grad ever")
    assert "in place of train.py:9" in finding.remedy
    assert finding.subjects == ("w", "b")
