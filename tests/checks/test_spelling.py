"""How sentences of findings spell the names of parameters."""

from factories import two_layers
from msgspec.structs import replace

from gradinspect.checks.findings import Finding
from gradinspect.checks.spelling import models_with_indices, spelled


def finding(text: str, *subjects: str, remedy: str = "") -> Finding:
    """Make a finding."""
    return Finding(code="GI361", title="t", text=text, places=(), remedy=remedy, subjects=subjects)


def test_a_path_that_begins_with_an_index_has_its_model_before_it() -> None:
    """In the reason and in the advice; other parameters and numbers stay, and so do subjects."""
    before = finding(
        "0.weight, 10.0.weight and net.0.weight; 0.weight_orig at 0.5 of 0.weight.",
        "0.weight", "10.0.weight (saved at version 1, now 2)", "0.5", "head.0.weight",
        remedy="Keep 0.weight.",
    )  # fmt: skip
    (after,) = spelled([before], {"net"})

    assert after.text == "net.0.weight, net.10.0.weight and net.0.weight; 0.weight_orig at 0.5 of net.0.weight."
    assert after.remedy == "Keep net.0.weight."
    assert after.subjects == before.subjects


def test_without_one_model_names_stay() -> None:
    """A path that may be of either of two models gets neither's name."""
    before = finding("0.weight", "0.weight")

    assert spelled([before], {"D", "G"}) == spelled([before], ()) == (before,)


def test_only_graphs_with_such_paths_have_such_a_model() -> None:
    """A record of layers that are attributes needs none."""
    graph = two_layers()
    bare = replace(graph, nodes=[replace(node, leaf=None) for node in graph.nodes])

    assert list(models_with_indices(graph)) == [graph.model_name]
    assert list(models_with_indices(bare)) == []
