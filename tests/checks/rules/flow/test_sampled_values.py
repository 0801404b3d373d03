"""What is said of a sample that cuts the gradient of its distribution."""

from gradinspect.checks.facts.values import SampledInput
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def test_the_line_of_the_sample_is_named_and_what_to_call_there() -> None:
    """With the line that uses the sample, and that of backward."""
    sampled, used, backward = (Frame(file="vae.py", line=line, code="...") for line in (3, 5, 8))
    (finding,) = findings_on(SampledInput(sampled=sampled, used=used, backward=backward))

    assert finding.remedy == "Use rsample() in place of sample() at vae.py:3."
    assert [(place.role, place.line) for place in finding.places] == [("sampled", 3), ("used", 5), ("backward", 8)]
    assert "What vae.py:5 computes from the sample gives no gradient" in finding.text
