"""RNNs and attentions along the batch, as findings."""

from gradinspect.checks.facts.axes import RunsAlongBatch
from gradinspect.checks.rules.axes.along_the_batch import along_findings
from gradinspect.graph import Frame

BATCH = Frame(file="train.py", line=3, code="x = data[rows]")
RAN = Frame(file="train.py", line=7, code="out, _ = rnn(x)")


def test_what_runs_and_where_the_batch_was_made() -> None:
    """An RNN has a name, an attention none; a loader's line has no index."""
    rnn = RunsAlongBatch(op="GRU", shape=(32, 6), num_calls=3, is_loaded=False, batch=BATCH, ran=RAN)
    attention = RunsAlongBatch(op="", shape=(32, 6), num_calls=3, is_loaded=True, batch=RAN, ran=RAN)
    (found,), (other,) = along_findings(rnn), along_findings(attention)

    assert found.text.startswith("train.py:3 has put 32 examples together along axis 0. GRU at train.py:7 runs")
    assert found.text.endswith("and takes the 6 steps on axis 1 for a batch.")
    assert found.remedy == "Make the GRU that is called at train.py:7 with batch_first=True."
    assert [(place.role, place.line) for place in found.places] == [("batch", 3), ("ran", 7)]
    assert other.text.startswith("A DataLoader that shuffles has put 32 examples together along axis 0. The attention")
    assert [place.role for place in other.places] == ["ran"]
