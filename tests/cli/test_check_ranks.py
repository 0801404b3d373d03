"""`gradinspect check` on two ranks: what parts them is found before the engine waits for it."""

import json
from pathlib import Path

import pytest
from check_expectations import declared_findings
from ranked import Ended, RankRun, on_ranks

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent.parent / "check_programs" / "ranks"
SCRIPTS = sorted(PROGRAMS.glob("*.py"))


@pytest.fixture(scope="module")
def runs() -> dict[Path, list[Ended]]:
    """Run all programs on two ranks."""
    asked = [RankRun(("check", str(script), "--format", "json")) for script in SCRIPTS]
    return dict(zip(SCRIPTS, on_ranks(asked), strict=True))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_ranks_are_compared(script: Path, runs: dict[Path, list[Ended]]) -> None:
    """Rank 0 reports what the program declares, nothing of a clean one, and the other rank is silent."""
    (code, output, _), (other_code, other_output, _) = runs[script]
    found = json.loads(output)
    declared = declared_findings(script)
    lines = [{f"{place['role']}={place['line']}" for place in finding["places"]} for finding in found["findings"]]

    assert [finding["code"] for finding in found["findings"]] == [expected for expected, _ in declared]
    assert all(expected <= seen for (_, expected), seen in zip(declared, lines, strict=True))
    assert found["notes"] == []
    assert code == (1 if declared else 0)
    assert (other_code, other_output) == (0, "")
