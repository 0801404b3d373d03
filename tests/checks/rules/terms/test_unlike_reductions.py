"""Sums beside means, as findings."""

from gradinspect.checks.facts.objectives import UnlikeReductions
from gradinspect.checks.rules.terms.unlike_reductions import unlike_findings
from gradinspect.graph import Frame

SUMMED = Frame(file="vae.py", line=3, code="kl = torch.sum(each)")
MEAN = Frame(file="vae.py", line=2, code="error = mse_loss(out, x)")
ADDED = Frame(file="vae.py", line=4, code="loss = error + kl")


def test_both_terms_are_named() -> None:
    """The sum is the one to be divided."""
    (found,) = unlike_findings(UnlikeReductions(rows=32, num_calls=6, summed=SUMMED, averaged=MEAN, used=ADDED))

    assert found.remedy == "Reduce both alike: at vae.py:3, take the mean, or divide by how many rows it has."
    assert "vae.py:3 sums over all 32 rows of the batch to what vae.py:2 averages" in found.text
    assert [(place.role, place.line) for place in found.places] == [("sum", 3), ("mean", 2), ("added", 4)]
