"""What is said of a copy that follows the parameters of a model and not its buffers."""

from gradinspect.checks.facts.training import LaggingBuffers
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def judged(fact: object) -> Finding:
    """Return the only finding."""
    (finding,) = findings_on(fact)
    return finding


def test_the_buffers_are_to_follow_where_the_parameters_do() -> None:
    """The line that updates the copy."""
    followed = Frame(file="train.py", line=9, code="...")
    finding = judged(LaggingBuffers(model="Net", names=("norm.running_mean", "norm.running_var"), followed=followed))

    assert finding.text.startswith("A copy of Net follows its parameters, by train.py:9, but not its buffers: ")
    assert finding.remedy.startswith("Let the buffers of the copy follow, too, after train.py:9: ")
    assert [(place.role, place.line) for place in finding.places] == [("updated", 9)]


def test_no_line_is_named_where_none_is_known() -> None:
    """The values were written in a way that is not followed."""
    finding = judged(LaggingBuffers(model="Net", names=("mean",)))

    assert finding.text.startswith("A copy of Net follows its parameters, but not its buffers: mean changes in ")
    assert finding.remedy.startswith("Let the buffers of the copy follow, too: ")
    assert not finding.places
