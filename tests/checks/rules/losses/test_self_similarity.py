"""Examples among their own negatives, as findings."""

from gradinspect.checks.facts.values import SelfSimilarity
from gradinspect.checks.rules.losses.self_similarity import self_findings
from gradinspect.graph import Frame

MADE = Frame(file="clr.py", line=3, code="sim = z @ z.t()")
USED = Frame(file="clr.py", line=5, code="loss = F.cross_entropy(sim, target)")


def test_the_share_of_the_diagonal_is_said() -> None:
    """And the line of the loss, before which the diagonal is hidden."""
    (found,) = self_findings(SelfSimilarity(num_rows=8, num_calls=3, share=0.514, made=MADE, used=USED))

    assert "a symmetric matrix of 8 rows in each of 3 calls" in found.text
    assert "51% of the softmax was on the diagonal" in found.text
    assert found.remedy.startswith("Before clr.py:5, hide the diagonal: scores = scores.masked_fill(")
    assert [(place.role, place.line) for place in found.places] == [("scores", 3), ("loss", 5)]
