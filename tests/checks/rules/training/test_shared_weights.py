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

    assert finding.remedy == "Copy it at train.py:4: self.best = copy.deepcopy(net.state_dict()), with import copy."
    assert [(place.role, place.line) for place in finding.places] == [("shared", 4)]


def test_an_average_is_to_start_from_a_copy() -> None:
    """The line that adds, and the one that shares."""
    shared, used = (Frame(file="train.py", line=line, code="...") for line in (4, 9))
    finding = judged(SharedWeights(kind="average", name="weight", shared=shared, used=used))

    assert finding.text.startswith("train.py:9 adds weight to a tensor in the same memory")
    assert finding.remedy.startswith("Copy the values at train.py:4")
    assert [(place.role, place.line) for place in finding.places] == [("shared", 4), ("added", 9)]


def test_a_target_that_is_the_model_is_to_be_a_copy() -> None:
    """Under the names of both; where another function was given it, no line is named."""
    shared, used = (Frame(file="train.py", line=line, code="...") for line in (4, 9))
    found = [
        judged(SharedWeights(kind="model", name="target", taken="net", shared=line, used=used))
        for line in (shared, None)
    ]

    assert found[0].text.startswith("train.py:9 copies the weights of a model onto themselves: net and target are one")
    assert (
        found[0].remedy
        == "Make target a model of its own at train.py:4: target = copy.deepcopy(net), with import copy."
    )
    assert (
        found[1].remedy
        == "Make target a model of its own where it is made: target = copy.deepcopy(net), with import copy."
    )
    assert [(place.role, place.line) for place in found[0].places] == [("shared", 4), ("loaded", 9)]


def test_states_that_are_the_model_are_to_be_copied() -> None:
    """One that is loaded again, and several that are the same."""
    shared, used = (Frame(file="train.py", line=line, code="...") for line in (4, 9))
    loaded = judged(SharedWeights(kind="loaded", name="best['w']", taken="net.state_dict()", shared=shared, used=used))
    several = judged(SharedWeights(kind="snapshots", name="s", taken="net.state_dict()", num_kept=3, shared=shared))

    assert loaded.text.startswith("train.py:4 got best['w'] from net.state_dict(), in the memory of the")
    assert [(place.role, place.line) for place in loaded.places] == [("shared", 4), ("loaded", 9)]
    assert several.text.startswith("3 or more results of net.state_dict() are kept, with steps")
    assert loaded.remedy == several.remedy == "At train.py:4, keep copy.deepcopy(net.state_dict()), with import copy."
