"""Names of module calls."""

import pytest
from factories import graph, leaf

from gradinspect.analyses.structure.call_names import INDEX, is_wrapped, leaf_inside, short_name, shown_path


@pytest.mark.parametrize(
    ("path", "parent", "expected"),
    [
        ("h.3.attn", "h.3", "attn"),
        ("layer4.1", "layer4", "layer4.1"),
        ("net.0.1", "net.0", "net.0.1"),
        ("transformer.h.0", "", "transformer.h.0"),
        ("3", "", "model.3"),
        ("3", None, "model.3"),
        ("", None, "model"),
        ("ups.3", "other", "ups.3"),
        ("other.3", "oth", "other.3"),
        ("a.b.c", "a", "b.c"),
        ("h.10.1.2", "h.10.1", "h.10.1.2"),
        ("h.10.x", "h.10", "x"),
        ("net.0.conv", "net.0.seq", "conv"),
        ("net.1.act", "net.0.seq", "net.1.act"),
        ("a.act", "a.b.c.d", "act"),
        ("a.b", "a.b", "b"),
    ],
)
def test_an_index_never_stands_without_its_parent(path: str, parent: str | None, expected: str) -> None:
    """A name is relative to the caller, and a digit keeps what it belongs to."""
    assert expected == short_name(path, parent)


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("layer4.1.conv1.weight", "layer4.1.conv1", "weight"),
        ("wte.weight", "lm_head", "wte.weight"),
        ("conv10.weight", "conv1", "conv10.weight"),
        ("w", None, "w"),
        ("w", "", "w"),
        ("2.weight", "2", "weight"),
        ("2.weight", "", "model.2.weight"),
        ("2.weight", None, "model.2.weight"),
        ("2.weight", "1", "model.2.weight"),
    ],
)
def test_a_parameter_beside_its_module_is_named_by_the_rest(name: str, path: str | None, expected: str) -> None:
    """The path of the module is beside it; a parameter of another module keeps its whole name."""
    model = graph(leaf(name, 2))

    assert expected == leaf_inside(model, model.nodes[0].leaf, path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "net"),
        ("3", "net.3"),
        ("3.attn", "net.3.attn"),
        ("h.3", "h.3"),
        ("*.attn", "net.*.attn"),
        ("0-3", "net.0-3"),
        ("0,2", "net.0,2"),
        ("3x", "3x"),
    ],
)
def test_a_path_or_pattern_that_begins_with_an_index_is_of_the_model(path: str, expected: str) -> None:
    """As the user calls it; a name with a digit in it is none."""
    assert shown_path(path, "net") == expected


def test_an_index_is_a_part_of_a_path_or_ends_one() -> None:
    """Not a number within a part; other digits, leading zeros and more digits than a number has are a name."""
    assert INDEX.findall("0.conv1.12.2d.3") == ["0", "1", "12", "3"]
    assert INDEX.sub("*", "up1.layer_10.x1y.h²") == "up*.layer_*.x1y.h²"
    for name in ("01", "up01", "٣", "up٣", "9" * 19, "x" + "9" * 19, "a-1", "1-2"):
        assert INDEX.findall(name) == []


def test_the_module_in_a_wrapper_of_compile_is_wrapped() -> None:
    """Not what is inside of it, nor any other module."""
    assert [is_wrapped(path) for path in ("_orig_mod", "net._orig_mod")] == [True, True]
    assert not any(map(is_wrapped, ("", "Net", "fc", "_orig_mod.fc")))
