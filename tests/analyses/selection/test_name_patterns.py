"""Names by a shell pattern, and the closest ones where none matches."""

import pytest

from gradinspect.analyses.selection.name_patterns import containing_paths, matching_names, no_such_name
from gradinspect.errors import GradInspectError

NAMES = ("h.0.attn.c_proj", "h.1.attn.c_proj", "h.1.mlp", "saved_tensors[1]", "attn")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("h.*.attn.*", {"h.0.attn.c_proj", "h.1.attn.c_proj"}),
        ("attn", {"attn"}),
        ("attn.c_proj", {"h.0.attn.c_proj", "h.1.attn.c_proj"}),
        ("m?p", {"h.1.mlp"}),
        ("saved_tensors[1]", {"saved_tensors[1]"}),
        ("*", set(NAMES)),
    ],
)
def test_a_pattern_matches_whole_names_or_else_their_ends(pattern: str, found: set[str]) -> None:
    """Brackets of a name are not a set of characters; ends count only where no whole name matches."""
    assert matching_names(pattern, NAMES, "module") == found


@pytest.mark.parametrize(
    ("name", "names", "sentence"),
    [
        ("h.2.mlp", NAMES, 'No module matches "h.2.mlp". Closest matches: "h.1.mlp"'),
        ("H.1.MLP", NAMES, 'Closest matches: "h.1.mlp"'),
        ("*mlx*", ("mlp", "abc"), 'Closest matches: "mlp".'),
        ("proj", ("h.0.attn.some_long_name.c_proj",), 'Closest matches: "h.0.attn.some_long_name.c_proj".'),
        ("zzz", ("b", "a"), 'Available: "a", "b".'),
        ("zzz", [f"n{number:02}" for number in range(15)], 'Available: "n00", "n01", '),
        ("zzz", [f"n{number:02}" for number in range(16)], "Give one that trace shows, or a pattern"),
        ("zzz", (), 'No module matches "zzz". This graph has no module.'),
    ],
)
def test_a_name_that_is_not_there(name: str, names: list[str], sentence: str) -> None:
    """The closest in any case, what contains it, all if they are few, or what to do."""
    assert sentence in str(no_such_name(name, names, "module"))


def test_three_of_the_closest_are_named() -> None:
    """And not all the copies of a block."""
    by_likeness = no_such_name("h.7.mlp", [f"h.{number}.mlp" for number in range(6)], "module")
    by_content = no_such_name("mlp", [f"some.very.long.path.to.h.{number}.mlp" for number in range(6)], "module")

    assert str(by_likeness).count("mlp") == str(by_content).count("mlp") == 4


def test_no_match_is_an_error() -> None:
    """One sentence with what was asked for."""
    with pytest.raises(GradInspectError, match='No module matches "xyz"'):
        matching_names("xyz", NAMES, "module")


def test_the_parents_of_a_path_are_those_it_is_in() -> None:
    """The innermost first, the outermost module last."""
    assert list(containing_paths("h.0.attn")) == ["h.0.attn", "h.0", "h", ""]
    assert list(containing_paths("")) == [""]
