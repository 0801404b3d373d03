"""How sentences of findings spell the names of parameters."""

from factories import two_layers
from msgspec.structs import replace

from gradinspect.checks.findings import Finding, place_of
from gradinspect.checks.spelling import IndexedModel, models_with_indices, spelled
from gradinspect.graph import Frame

D, G = IndexedModel("D", "gan.py:9"), IndexedModel("G", "gan.py:16")


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
    (after,) = spelled([before], {IndexedModel("net", "train.py:3"), IndexedModel("net", "train.py:5")})

    assert after.text == "net.0.weight, net.10.0.weight and net.0.weight; 0.weight_orig at 0.5 of net.0.weight."
    assert after.remedy == "Keep net.0.weight."
    assert after.subjects == before.subjects


def test_without_one_model_names_stay() -> None:
    """A path that may be of either of two models gets neither's name."""
    before = finding("0.weight", "0.weight")

    assert spelled([before], {D, G}) == spelled([before], ()) == (before,)


def test_of_several_models_a_finding_names_the_one_of_its_backward_call() -> None:
    """If it names one; of one that is called otherwise elsewhere, it has the name that it has there."""
    before = replace(finding("0.weight", "0.weight"), places=place_of("backward", Frame("gan.py", 16)))
    both = replace(before, places=(*before.places, *place_of("backward", Frame("gan.py", 9))))

    assert [one.text for one in spelled([before, both], {D, G})] == ["G.0.weight", "0.weight"]


def test_only_graphs_with_such_paths_have_such_a_model() -> None:
    """A record of layers that are attributes needs none."""
    graph = two_layers()
    bare = replace(graph, nodes=[replace(node, leaf=None) for node in graph.nodes])

    assert list(models_with_indices(graph, Frame("train.py", 3))) == [IndexedModel(graph.model_name, "train.py:3")]
    assert list(models_with_indices(bare, None)) == []


def test_a_finding_without_a_backward_call_is_of_the_model_that_its_lines_name() -> None:
    """If they name one, as a variable of its own."""
    frozen, stepped = (Frame("gan.py", 20, code=code) for code in ("D.requires_grad_(False)", "of_G.step(); a.G = 1"))
    before = replace(finding("0.weight", "0.weight"), places=(*place_of("set", frozen), *place_of("step", stepped)))
    both = replace(before, places=(*before.places, *place_of("made", Frame("gan.py", 3, code="o = SGD(G[0])"))))
    apart = replace(before, places=(*before.places, *place_of("backward", Frame("gan.py", 30))))

    assert [one.text for one in spelled([before, both, apart], {D, G})] == ["D.0.weight", "0.weight", "0.weight"]


def test_a_name_before_an_index_may_be_that_of_a_model() -> None:
    """It is one if a line of the finding has it as a variable; `self.body` is a part."""
    graph = two_layers()
    nodes = [
        replace(node, leaf=node.leaf and replace(node.leaf, name=f"body.{node.leaf.name}")) for node in graph.nodes
    ]
    found = set(models_with_indices(replace(graph, nodes=nodes), None))
    lines = [Frame("a.py", 3, code=code) for code in ("freeze(body)", "self.body[0]")]
    of_model, of_part = (replace(finding("0.weight", "0.weight"), places=place_of("set", line)) for line in lines)

    assert found == {IndexedModel("body", "an unknown line", is_alone=False)}
    assert [one.text for one in spelled([of_model, of_part], found)] == ["body.0.weight", "0.weight"]
    assert spelled([of_model], {*found, G})[0].text == "G.0.weight"
