"""`gradinspect check` on two ranks: what parts them is found before the engine waits for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from check_expectations import declared_findings

PROGRAMS = Path(__file__).parent.parent / "check_programs" / "ranks"
SCRIPTS = sorted(PROGRAMS.glob("*.py"))
PAIRS = Path(__file__).parent.parent / "rank_pairs.py"


@pytest.fixture(scope="module")
def runs() -> dict[str, list[tuple[int, str]]]:
    """Run all programs on two ranks."""
    command = [sys.executable, str(PAIRS), *map(str, SCRIPTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: dict[str, list[tuple[int, str]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_ranks_are_compared(script: Path, runs: dict[str, list[tuple[int, str]]]) -> None:
    """Rank 0 reports what the program declares, nothing of a clean one, and the other rank is silent."""
    (code, output), (other_code, other_output) = runs[str(script)]
    found = json.loads(output)
    declared = declared_findings(script)
    lines = [{f"{place['role']}={place['line']}" for place in finding["places"]} for finding in found["findings"]]

    assert [finding["code"] for finding in found["findings"]] == [expected for expected, _ in declared]
    assert all(expected <= seen for (_, expected), seen in zip(declared, lines, strict=True))
    assert found["notes"] == []
    assert code == (1 if declared else 0)
    assert (other_code, other_output) == (0, "")
