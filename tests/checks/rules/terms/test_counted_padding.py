"""Padding in the mean of a loss, as a finding."""

from gradinspect.checks.facts.targets import CountedPadding
from gradinspect.checks.rules.terms.counted_padding import padding_findings
from gradinspect.graph import Frame


def test_the_share_of_padding_is_told() -> None:
    """With the label to ignore."""
    used = Frame(file="train.py", line=7, code="loss")
    (finding,) = padding_findings(CountedPadding(label=3, num_calls=4, num_padding=300, num_all=400, used=used))

    assert finding.text.startswith("75% of the labels that train.py:7 averages in 4 calls are 3, which is the label")
    assert (finding.remedy or "").startswith("Give the loss of train.py:7 ignore_index=3.")
    assert [place.line for place in finding.places] == [7]


def test_the_id_that_fills_up_is_told() -> None:
    """Where no embedding has a padding_idx; a label that tokens have cannot be ignored."""
    fact = CountedPadding(label=0, num_calls=4, num_padding=300, num_all=400, filler=7, is_of_tokens=True)
    (finding,) = padding_findings(fact)

    assert "label of padded tokens: id 7 fills up the rows, and is nowhere else in them." in finding.text
    assert (finding.remedy or "").startswith("Fill up the labels with -100, which ")
