"""Labels that a loss does not know, as findings."""

from gradinspect.checks.facts.values import UnknownLabels
from gradinspect.checks.rules.losses.unknown_labels import label_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="y = (a == b).float()")
USED = Frame(file="train.py", line=5, code="loss = loss_fn(za, zb, y)")


def test_zeros_are_no_sign() -> None:
    """The line that made them is the one to change."""
    fact = UnknownLabels(loss="soft_margin_loss", wants_signs=True, least=0, most=1, made=MADE, used=USED)
    (found,) = label_findings(fact)

    assert found.code == "GI355"
    assert found.text.startswith("soft_margin_loss wants targets that are 1 or -1, and all that it got are 0 or 1.")
    assert [(place.role, place.line) for place in found.places] == [("labels", 3), ("loss", 5)]
    assert found.remedy == "At train.py:3, make -1 of 0: target * 2 - 1."


def test_targets_outside_of_0_and_1_are_no_probabilities() -> None:
    """Signs are moved; what else they are is not known."""
    fact = UnknownLabels(loss="bce", wants_signs=False, least=-1, most=1, used=USED)
    (signs,) = label_findings(fact)
    (pixels,) = label_findings(UnknownLabels(loss="bce", wants_signs=False, least=0, most=255, used=USED))

    assert signs.remedy == "At train.py:5, make 0 of -1: (target + 1) / 2."
    assert "from 0 to 255" in pixels.text
    assert pixels.remedy == "At train.py:5, scale the targets to 0 and 1."
    assert [place.role for place in pixels.places] == ["loss"]
