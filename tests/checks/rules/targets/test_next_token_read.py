"""Models that read the next token, as findings."""

from gradinspect.checks.facts.targets import NextTokenRead
from gradinspect.checks.rules.targets.next_token_read import read_findings
from gradinspect.graph import Frame

READ = Frame(file="train.py", line=3, code="read")
USED = Frame(file="train.py", line=7, code="used")


def test_an_attention_needs_a_mask_and_an_rnn_one_direction() -> None:
    """At the line that reads."""
    (attention,) = read_findings(NextTokenRead(op="", num_calls=4, attended=READ, used=USED))
    (rnn,) = read_findings(NextTokenRead(op="GRU", num_calls=4, attended=READ, used=READ))

    assert "The attention at train.py:3 lets each place read the next one" in attention.text
    assert attention.remedy.startswith("Hide the later places from the attention at train.py:3")
    assert [(place.role, place.line) for place in attention.places] == [("read", 3), ("loss", 7)]
    assert "The GRU at train.py:3 reads in both directions" in rnn.text
    assert rnn.remedy == "Make the GRU that is called at train.py:3 without bidirectional=True."
    assert [place.role for place in rnn.places] == ["read"]
