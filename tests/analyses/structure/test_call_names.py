"""Names of module calls."""

import pytest

from gradinspect.analyses.structure.call_names import fold_name, name_inside, short_name


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
    ],
)
def test_an_index_never_stands_without_its_parent(path: str, parent: str | None, expected: str) -> None:
    """A name is relative to the caller, and a digit keeps what it belongs to."""
    assert expected == short_name(path, parent)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["transformer.h.1", "transformer.h.0"], "transformer.h.0-1"),
        ([f"h.{index}" for index in reversed(range(12))], "h.0-11"),
        (["0", "2", "4"], "0, 2, 4"),
        ([f"net.{2 * index}" for index in range(9)], "net.0, 2 to 16"),
        (["a.0", "b.0"], None),
        (["attn", "mlp"], None),
        (["h.0"], None),
        (["h.0", "h.0"], None),
    ],
)
def test_a_fold_is_named_by_its_indices(names: list[str], expected: str | None) -> None:
    """A range only covers what it says; what is between is listed."""
    assert expected == fold_name(names)


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("layer4.1.conv1.weight", "layer4.1.conv1", "weight"),
        ("wte.weight", "lm_head", "wte.weight"),
        ("conv10.weight", "conv1", "conv10.weight"),
        ("w", None, "w"),
        ("w", "", "w"),
    ],
)
def test_a_parameter_beside_its_module_is_named_by_the_rest(name: str, path: str | None, expected: str) -> None:
    """The path of the module is beside it; a parameter of another module keeps its whole name."""
    assert expected == name_inside(name, path)
