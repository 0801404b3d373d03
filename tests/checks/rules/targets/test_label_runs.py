"""Classes one after another, as findings."""

from gradinspect.checks.facts.targets import LabelRuns
from gradinspect.checks.rules.targets.label_runs import run_findings
from gradinspect.graph import Frame

USED = Frame(file="train.py", line=7, code="used")


def test_how_long_a_class_stays() -> None:
    """And what share of a batch it has."""
    fact = LabelRuns(loss="nll_loss", num_calls=24, num_kinds=3, num_runs=6, share=0.9, labels=32, made=USED, used=USED)
    (found,) = run_findings(fact)

    assert found.text.startswith("In 24 calls of nll_loss at train.py:7, 90% of the labels of a batch are one class")
    assert found.text.endswith("one stays for 4 batches of about 32 labels, then comes the next.")
    assert found.remedy.startswith("Shuffle the examples before they become batches")
    assert [place.role for place in found.places] == ["loss"]
