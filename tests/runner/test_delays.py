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
    monkeypatch.setattr(delays, "monotonic", lambda: 10.0)

    assert delays.delay_s() == expected
    assert delays.undelayed() == 10.0 - expected


def test_a_stop_in_a_while_comes_no_earlier_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the clock that stands still meanwhile has come so far."""
    times = iter([5.0, 5.0, 5.004, 5.01])
    monkeypatch.setattr(stopping, "undelayed", times.__next__)
    asked: list[list[float]] = []

    def may_stop() -> bool:
        asked.append(list(times))
        return False

    stopping.Stopper()._stop_after(0.01, may_stop)

    assert asked == [[]]


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even on a machine that never lets the program run."""
    monkeypatch.setattr(stopping, "undelayed", lambda: 5.0)
    monkeypatch.setattr(stopping, "MOST_DELAY_S", 0.0)
    asked: list[None] = []

    def may_stop() -> bool:
        asked.append(None)
        return False

    stopping.Stopper()._stop_after(0.01, may_stop)

    assert asked == [None]
