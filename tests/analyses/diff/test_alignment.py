"""Sequences are aligned as a reader would."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.diff.alignment import Aligner, Key, rising


def keys(text: str) -> list[Key]:
    """Make a node of each letter; upper and lower case are the same operator with other shapes."""
    return [Key(ord(letter), ord(letter.lower()), int(letter.isupper())) for letter in text]


def aligned(first: str, second: str) -> str:
    """Return what B has for each letter of A."""
    pairs = dict(Aligner().align(keys(first), keys(second)))
    return "".join(second[pairs[place]] if place in pairs else "-" for place in range(len(first)))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("abc", "abc", "abc"),
        ("abc", "axbc", "abc"),
        ("abc", "ac", "a-c"),
        ("abAb", "Ab", "--Ab"),
        ("abc", "aBc", "aBc"),
        ("abc", "axc", "axc"),
        ("abcd", "Xc", "--c-"),
        ("", "abc", ""),
    ],
)
def test_the_best_alignment(first: str, second: str, expected: str) -> None:
    """Equal nodes before those of the same operator, those before others of the same shape."""
    assert aligned(first, second) == expected


@pytest.mark.parametrize("block", ["abcd", "aabb", "abcdefghijklmnopqrstuvw"])
def test_long_sequences_with_a_change_in_each_block(block: str) -> None:
    """Nothing is lost where no window occurs only once."""
    first = block * 500

    assert [aligned(first, second * 500) for second in (f"{block}X", f"X{block}")] == [first, first]


def test_a_part_that_is_missing_in_a_long_sequence() -> None:
    """Whatever comes after it is found again."""
    before, gone, after = ("".join(chr(start + 7 * n % 1999) for n in range(1999)) for start in (1000, 5000, 9000))

    assert aligned(before + gone + after, before + after) == before + "-" * 1999 + after


@given(st.text("abcABC", max_size=40), st.text("abcABC", max_size=40))
def test_pairs_rise(first: str, second: str) -> None:
    """Each node is in one pair at most, and pairs do not cross."""
    pairs = Aligner().align(keys(first), keys(second))

    assert all(x < other_x and y < other_y for (x, y), (other_x, other_y) in pairwise(pairs))


def test_the_longest_rising_part() -> None:
    """Of pairs in any order."""
    assert rising([(2, 0), (0, 1), (1, 2), (3, 3)]) == [(0, 1), (1, 2), (3, 3)]
    assert rising([]) == []
