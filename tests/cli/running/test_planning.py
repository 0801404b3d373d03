"""The budget of a search for plans."""

import pytest

from gradinspect.analyses.planning.changes import NO_CHANGE
from gradinspect.analyses.planning.search import PlanOutcome, TimeIsOver
from gradinspect.cli.running import planning


@pytest.mark.parametrize(("each", "number"), [(1.0, 11), (4.0, 2), (9.0, 1), (30.0, 1)])
def test_a_plan_begins_only_if_another_like_it_and_a_run_from_the_start_have_time(
    each: float, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 20 s, of which 5 are left for the plan that is reported; the first one has what there is."""
    clock = [100.0]
    monkeypatch.setattr(planning, "monotonic", lambda: clock[0])

    def measure(_plan: object) -> PlanOutcome:
        clock[0] += each
        return PlanOutcome(plan=NO_CHANGE, peak_bytes=7)

    measured = planning._telling(measure, 5, 97.0, 20.0, lambda: 5.0)  # the rest needs torch
    with pytest.raises(TimeIsOver):
        list(map(measured, [NO_CHANGE] * 99))

    assert clock[0] == 100.0 + number * each


def test_what_is_written_meanwhile_is_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    """A change is named whole, within 80 columns; the end of very many modules gives way."""
    change = "checkpoint " + ", ".join(f"encoder.layers.{place}.attention" for place in range(6))
    planning._print_line(f"first estimate, not run: 3.2 MiB, too much, {change}")
    lines = capsys.readouterr().err.splitlines()

    assert " ".join(map(str.strip, lines)) == f"first estimate, not run: 3.2 MiB, too much, {change}"
    assert [len(line) <= planning.MAX_COLUMNS for line in lines] == [True] * 4
    assert [line.startswith("  ") for line in lines] == [False, True, True, True]

    planning._print_line("x " * 1000)

    assert len(capsys.readouterr().err.splitlines()) <= planning.MAX_LINES + 1
