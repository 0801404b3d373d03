"""What is said of weights that share memory with the trained ones."""

from gradinspect.checks.facts.training import SharedWeights
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def judged(fact: object) -> Finding:
    """Return the only finding."""
    (finding,) = findings_on(fact)
    return finding


def test_a_state_dict_is_to_be_copied_where_it_is_kept() -> None:
    """As the program writes it there."""
    shared = Frame(file="train.py", line=4, code="...")
    finding = judged(SharedWeights(kind="state", name="self.best", taken="net.state_dict()", shared=shared))

    assert finding.remedy == "Copy it at train.py:4: self.best = copy.deepcopy(net.state_dict())."
    assert [(place.role, place.line) for place in finding.places] == [("shared", 4)]


def test_an_average_is_to_start_from_a_copy() -> None:
    """The line that adds, and the one that shares."""
    shared, used = (Frame(file="train.py", line=line, code="...") for line in (4, 9))
    finding = judged(SharedWeights(kind="average", name="weight", shared=shared, used=used))

    assert finding.text.startswith("train.py:9 adds weight to a tensor in the same memory")
    assert finding.remedy.startswith("Copy the values at train.py:4")
    assert [(place.role, place.line) for place in finding.places] == [("shared", 4), ("added", 9)]
