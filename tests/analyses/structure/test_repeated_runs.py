"""Stretches that repeat themselves, found in plain sequences."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.repeated_runs import Stretch, repeated_stretches


def found(text: str) -> set[Stretch]:
    """Find the stretches in a text of letters."""
    return {stretch for stretches in repeated_stretches([ord(letter) for letter in text]) for stretch in stretches}


def test_finds_a_period_between_other_things() -> None:
    """A repeat between unlike ends is found whole."""
    assert Stretch(1, 9, 3) in found("xabcabcaby")


def test_finds_a_period_in_which_a_letter_comes_twice() -> None:
    """A period whose letters occur several times in it is found."""
    assert Stretch(0, 20, 5) in found("ababc" * 4)


def test_finds_nothing_where_nothing_repeats() -> None:
    """A sequence of different values has no stretches."""
    assert set() == found("abcdefghij")


@given(st.text("abc", min_size=1, max_size=7), st.integers(3, 6))
def test_a_repeated_word_is_covered(word: str, times: int) -> None:
    """Any word said three times or more is covered by one stretch of its shortest period."""
    length = len(word) * times

    assert any(stretch.start == 0 and stretch.stop == length for stretch in found(word * times))


@given(st.text("ab", max_size=30))
def test_stretches_are_true(text: str) -> None:
    """Every stretch found has its period, and cannot be made longer on the right."""
    for start, stop, period in found(text):
        assert all(text[place] == text[place + period] for place in range(start, stop - period))
        assert stop == len(text) or text[stop] != text[stop - period]
