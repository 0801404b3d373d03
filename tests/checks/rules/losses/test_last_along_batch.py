"""The last sequence of a batch, as a finding."""

from gradinspect.checks.facts.values import LastAlongBatch
from gradinspect.checks.rules.losses.last_along_batch import last_along_batch_findings
from gradinspect.graph import Frame

RAN = Frame(file="tag.py", line=3, code="out, _ = self.rnn(x)")
USED = Frame(file="tag.py", line=7, code="return self.head(out[:, -1])")


def test_both_readings_are_said() -> None:
    """Which of them is meant, the program alone does not show."""
    (found,) = last_along_batch_findings(LastAlongBatch(op="GRU", shape=(32, 6), ran=RAN, used=USED))
    (one_line,) = last_along_batch_findings(LastAlongBatch(op="GRU", shape=(32, 6), ran=USED, used=USED))

    assert "axis 0 of its input for 32 steps and axis 1 for 6 sequences" in found.text
    assert "batch_first=True" in found.remedy
    assert "[-1] at tag.py:7" in found.remedy
    assert [(place.role, place.line) for place in found.places] == [("ran", 3), ("taken", 7)]
    assert [place.role for place in one_line.places] == ["taken"]


def test_a_mean_over_sequences_is_said_to_be_one() -> None:
    """With the axis that is time."""
    (found,) = last_along_batch_findings(LastAlongBatch(op="LSTM", how="mean", shape=(32, 6), ran=RAN, used=USED))

    assert "tag.py:7 takes the mean of these sequences, in all steps." in found.text
    assert found.remedy.endswith("If axis 0 is time, take the mean over axis 0 at tag.py:7.")
