"""Names of module calls."""

import pytest

from gradinspect.analyses.structure.call_names import INDEX, fold_name, name_inside, short_name, shown_path


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
        (["3", "5"], "3, 5"),
        (["h.1", "h.3", "h.5", "h.7"], "h.1, 3, 5, 7"),
        (["h.1", "h.3", "h.5", "h.7", "h.9"], "h.1, 3 to 9"),
        (["h.9", "h.10", "h.11"], "h.9-11"),
        (["h.0", "h.x"], None),
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


def test_an_index_is_a_whole_part_of_a_path() -> None:
    """At the begin, in the middle, and at the end."""
    assert INDEX.findall("0.conv1.12.2d.3") == ["0", "12", "3"]


@pytest.mark.parametrize("lasts", [("²", "³"), ("٣", "٤"), ("01", "1"), ("9" * 5000, "8" * 5000)])
def test_what_is_no_plain_number_is_a_name(lasts: tuple[str, str]) -> None:
    """Other digits, leading zeros and thousands of digits are not folded into a range."""
    assert fold_name([f"h.{last}" for last in lasts]) is None
