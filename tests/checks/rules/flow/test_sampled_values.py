"""What is said of a sample that cuts the gradient of its distribution."""

import pytest

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


@pytest.mark.parametrize(
    ("code", "distribution"),
    [
        ("return torch.normal(mu, std)", "Normal(mu, std)"),
        ("z = torch.normal(mean=a[0], std=0.1).view(4)", "Normal(a[0], 0.1)"),
        ("z = torch.normal(", "Normal(mean, std)"),
        ("z = torch.normal(mu, std, generator=g)", "Normal(mean, std)"),
    ],
)
def test_a_normal_sample_is_replaced_by_one_of_its_distribution(code: str, distribution: str) -> None:
    """Of the arguments on the line, if these are all."""
    (finding,) = findings_on(SampledInput(is_normal=True, sampled=Frame(file="vae.py", line=3, code=code)))

    assert finding.text.startswith("torch.normal() at vae.py:3 draws without a gradient.")
    assert (
        finding.remedy == f"At vae.py:3, use torch.distributions.{distribution}.rsample() in place of torch.normal()."
    )
