"""Weights that favor what is frequent, as findings."""

from msgspec.structs import replace

from gradinspect.checks.facts.targets import WeightsOfFrequency
from gradinspect.checks.rules.targets.inverted_weights import weight_findings
from gradinspect.graph import Frame

FACT = WeightsOfFrequency(
    loss="cross_entropy", is_positive=False, frequent=0, frequent_share=0.9, frequent_weight=0.9, rare=1,
    rare_share=0.1, rare_weight=0.1, num_labels=1_536, made=Frame(file="train.py", line=4, code="w = counts / n"),
    used=Frame(file="train.py", line=9, code="loss = criterion(scores, y)"),
)  # fmt: skip


def test_both_classes_are_named() -> None:
    """With their shares and weights, and the line that makes these."""
    (found,) = weight_findings(FACT)

    assert "Of 1,536 labels, 90% are 0, which weighs 0.9, and 10% are 1, which weighs 0.1." in found.text
    assert [(place.role, place.line) for place in found.places] == [("weights", 4), ("loss", 9)]
    assert found.remedy.startswith("At train.py:4, make weight the inverse of the number of its labels")


def test_the_weight_of_positive_labels_has_its_own_words() -> None:
    """It is the other class that has the weight 1."""
    (found,) = weight_findings(replace(FACT, is_positive=True, made=None))

    assert found.text.startswith("pos_weight of cross_entropy has the proportions")
    assert found.remedy == (
        "At train.py:9, make pos_weight the number of negative labels divided by that of positive ones."
    )
