"""A backward that a module has, and that nobody calls."""

from gradinspect.checks.facts.training import UncalledBackward
from gradinspect.checks.rules.uncalled_backwards import uncalled_findings
from gradinspect.graph import Frame


def test_the_class_and_its_line_are_named() -> None:
    """In the text, the place and the advice."""
    line = Frame(file="train.py", line=7, code="def backward(self, grad):")
    (found,) = uncalled_findings(UncalledBackward(module="Reverse", defined=line))

    assert (found.code, found.subjects) == ("GI203", ("Reverse",))
    assert found.text.startswith("Reverse is an nn.Module with a method backward. Autograd calls the derivatives of")
    assert [(place.role, place.line) for place in found.places] == [("defined", 7)]
    assert found.remedy.endswith("Reverse.forward returns its apply(x). Or remove train.py:7.")
