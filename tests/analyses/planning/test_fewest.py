"""The smallest number of modules that fits: found, in few tries, where peaks fall evenly or not."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.planning.fewest import Fewest


def searched(peaks: list[int], limit: int) -> tuple[int, int]:
    """Return the number that was found, and how many were tried; the first number of modules is none, the last all."""
    fewest = Fewest(len(peaks) - 1, limit, peaks[0], peaks[-1])
    tried, enough = 0, len(peaks) - 1
    while (number := fewest.next) is not None:
        fits = peaks[number] <= limit
        fewest.note(number, peaks[number], fits=fits)
        tried, enough = tried + 1, min(enough, number) if fits else enough
    return enough, tried


@given(st.lists(st.integers(0, 50), min_size=1, max_size=96), st.data())
def test_it_is_what_trying_all_finds(falls: list[int], data: st.DataObject) -> None:
    """Also where some modules hold much more than others; never with many more tries than halving needs."""
    peaks = [1000 + sum(falls[number:]) for number in range(len(falls) + 1)]
    limit = data.draw(st.integers(1000, max(1000, peaks[0] - 1)))
    enough, tried = searched(peaks, limit)
    expected = next((number for number, peak in enumerate(peaks) if number and peak <= limit), None)

    assert enough == expected
    assert tried <= 3 * len(falls).bit_length()


def test_equal_modules_take_two_tries() -> None:
    """The number where the line meets the limit, and the one before it."""
    peaks = [1000 - 10 * number for number in range(49)]

    assert searched(peaks, 705) == (30, 2)


def test_what_is_computed_again_takes_no_more() -> None:
    """It comes on top as soon as one module is changed: the number next to the one of the line is tried."""
    peaks = [1000, *(1010 - 10 * number for number in range(1, 49))]

    assert searched(peaks, 705) == (31, 2)
