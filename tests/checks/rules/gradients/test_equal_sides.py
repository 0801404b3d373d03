"""Comparisons of the same with the same, as findings."""

from gradinspect.checks.facts.values import SameTwice
from gradinspect.checks.rules.gradients.equal_sides import equal_findings
from gradinspect.graph import Frame

NEW = Frame(file="ppo.py", line=3, code="new = policy(x)")
OLD = Frame(file="ppo.py", line=4, code="old = policy(x)")
RATIO = Frame(file="ppo.py", line=5, code="ratio = new / old")


def test_both_lines_are_named() -> None:
    """And what the comparison gives; the parameters are its subjects."""
    fact = SameTwice(op="div", num_calls=3, names=("w",), first=NEW, second=OLD, compared=RATIO)
    (found,) = equal_findings(fact)

    assert found.code == "GI603"
    assert found.text.startswith("ppo.py:3 and ppo.py:4 compute the same function of the same parameters twice, and ")
    assert "equal in each of 3 calls: the quotient is 1," in found.text
    assert [(place.role, place.line) for place in found.places] == [("new", 3), ("old", 4), ("compared", 5)]
    assert found.subjects == ("w",)


def test_one_line_may_compute_both() -> None:
    """A loss function is named by itself."""
    (found,) = equal_findings(SameTwice(op="mse_loss", num_calls=3, first=OLD, second=OLD, compared=OLD))

    assert found.text.startswith("ppo.py:4 computes the same function of the same parameters twice")
    assert "the mse_loss of both is constant" in found.text
    assert [place.role for place in found.places] == ["new", "compared"]
