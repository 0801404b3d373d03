"""Nodes by the names that users write."""

import pytest
from factories import graph, leaf, op, two_layers
from msgspec.structs import replace

from gradinspect.analyses.structure.node_names import (
    COMPILED,
    function_words,
    module_names,
    named_nodes,
    names_around,
    names_of_path,
    node_number,
)
from gradinspect.errors import GradInspectError
from gradinspect.graph import ModuleCall


@pytest.mark.parametrize(("word", "number"), [("#0", 0), ("0", 0), ("9", 9), ("#9", 9), ("#007", 7)])
def test_a_number_is_a_node(word: str, number: int) -> None:
    """With or without its sign, up to the last node."""
    assert node_number(word, two_layers()) == number


@pytest.mark.parametrize("word", ["#10", "10", "#-1", "-1", "#", "", "#x", "1.5", "##1"])
def test_a_number_that_no_node_has_is_refused(word: str) -> None:
    """The sentence says which there are."""
    with pytest.raises(GradInspectError) as raised:
        node_number(word, two_layers())

    assert str(raised.value) == f"There is no node '{word}'. The nodes are #0 to #9."


@pytest.mark.parametrize(
    ("word", "numbers"),
    [
        ("#3", {3}),
        ("AddmmBackward0", {1, 4}),
        ("Addmm", {1, 4}),
        ("TBackward0", {2, 5}),
        ("model", {1, 2, 3, 4, 5}),
        ("2", {1, 2}),
        ("model.2", {1, 2}),
        ("2.weight", {7}),
        ("*.bias", {6, 8}),
        ("bias", {6, 8}),
    ],
)
def test_a_name_finds_its_nodes(word: str, numbers: set[int]) -> None:
    """A class, its operator, a module with what is in it, also as it is shown, and a parameter."""
    assert named_nodes(word, two_layers()) == numbers


def test_only_the_end_of_a_class_is_left_out() -> None:
    """What stands between belongs to the name; a class with another end is found by all of it."""
    drawn = graph(op("MyBackwardBackward12", 1), op("NoEnd", 2), leaf("w", 3))

    assert named_nodes("MyBackward", drawn) == {0}
    assert named_nodes("NoEnd", drawn) == {1}
    with pytest.raises(GradInspectError):
        named_nodes("My", drawn)


def test_a_tied_parameter_is_found_by_each_of_its_names() -> None:
    """Whichever of the two the user knows."""
    tied = leaf("wte.weight", 3)
    assert tied.leaf is not None
    drawn = graph(op("MulBackward0", 1), replace(tied, leaf=replace(tied.leaf, aliases=("head.weight",))))

    assert named_nodes("wte.weight", drawn) == named_nodes("head.weight", drawn) == {1}


def test_a_nameless_leaf_has_the_name_of_its_class_alone() -> None:
    """No name is no name to look for."""
    drawn = graph(op("MulBackward0", 1), leaf(None, 3))

    assert named_nodes("AccumulateGrad", drawn) == {1}
    with pytest.raises(GradInspectError):
        named_nodes("None", drawn)


def test_the_names_of_modules_are_paths_and_what_is_shown() -> None:
    """The outermost has its own name in the program; each name is there once, however often it is called."""
    calls = tuple(ModuleCall(path=path, class_name="A") for path in ("", "0", "h.1", "h.1"))
    drawn = graph(op("MulBackward0", None), modules=calls, model_name="net")

    assert module_names(drawn) == {"", "net", "0", "net.0", "h.1"}
    assert names_of_path(drawn, "0") == ("0", "net.0")
    assert list(names_around(drawn, "0.h")) == ["0.h", "net.0.h", "0", "net.0", "", "net"]


def test_the_function_of_a_node() -> None:
    """A custom one by its name, a compiled one as such; other nodes have none."""
    made = graph(
        op("ClipBackward", 1, kind="custom", function="train.Clip"), op("SinBackward0", 2),
        op("CompiledFunctionBackward", 3, kind="compiled", function="CompiledFunction"), leaf("w", 2),
    )  # fmt: skip

    assert [function_words(made, number) for number in range(3)] == ["train.Clip", None, COMPILED]
