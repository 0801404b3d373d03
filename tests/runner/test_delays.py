"""For how long a machine lets a program wait."""

from pathlib import Path

import pytest

from gradinspect.runner import delays, stopping


@pytest.mark.parametrize(
    ("text", "expected"), [("7000 2500000000 31\n", 2.5), ("7000\n", 0.0), ("no numbers\n", 0.0), (None, 0.0)]
)
def test_what_the_system_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, expected: float
) -> None:
    """It is the second number; without it there is no delay, and the clock is that on the wall."""
    file = tmp_path / "schedstat"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(delays, "_STATISTICS", str(file))

    assert delays.delay_s() == expected
    assert delays.without_delay(10.0, delays.delay_s()) == 10.0 - expected


def test_a_stop_in_a_while_comes_no_earlier_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the clock without the delay has come so far."""
    times, delayed = iter([105.0, 105.3, 105.604, 105.91]), iter([3.0, 3.3, 3.6, 3.89])
    monkeypatch.setattr(stopping, "monotonic", times.__next__)
    monkeypatch.setattr(stopping, "delay_s", delayed.__next__)
    asked: list[list[float]] = []

    def may_stop() -> bool:
        asked.append(list(times))
        return False

    stopping.Stopper()._stop_after(0.01, may_stop)

    assert asked == [[]]


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even on a machine that never lets the program run."""
    waited, delayed = iter([0.0, 0.0, 0.0, 30.0, 60.0, 90.0]), iter([0.0, 0.0, 0.0, 30.0, 60.0, 90.0])
    monkeypatch.setattr(stopping, "monotonic", waited.__next__)
    monkeypatch.setattr(stopping, "delay_s", delayed.__next__)
    asked: list[None] = []

    def may_stop() -> bool:
        asked.append(None)
        return False

    stopping.Stopper()._stop_after(0.01, may_stop)

    assert asked == [None]
    assert list(waited) == []
