"""`gradinspect check` on two ranks: what parts them is found before the engine waits for it.

A program with an advice is two in one: lines that end with `# -` belong to the broken one, those that end with `# +` to
the one with the advice applied. Its last line prints the first and the last loss.
"""

import json
import re
from pathlib import Path

import pytest
from check_expectations import declared_findings, variant
from ranked import Ended, RankRun, on_ranks

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent.parent / "check_programs" / "ranks"
SCRIPTS = sorted(PROGRAMS.glob("*.py"))
_ADVICE = re.compile(r"^# advice: (.+)$", re.MULTILINE)
ADVISED = [script for script in SCRIPTS if _ADVICE.search(script.read_text())]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, list[Ended]]:
    """Run all programs on two ranks."""
    folder, asked = tmp_path_factory.mktemp("broken"), []
    for script in SCRIPTS:
        (folder / script.name).write_text(variant(script.read_text(), "# +"))
        asked.append(RankRun(("check", str(folder / script.name), "--format", "json")))
    return dict(zip(SCRIPTS, on_ranks(asked), strict=True))


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, list[Ended]]:
    """Run those with an advice on two ranks, with the advice applied."""
    folder, asked = tmp_path_factory.mktemp("applied"), []
    for script in ADVISED:
        (folder / script.name).write_text(variant(script.read_text(), "# -"))
        asked.append(RankRun(("check", str(folder / script.name), "--format", "json", "--continue", "--steps", "3")))
    return dict(zip(ADVISED, on_ranks(asked), strict=True))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_ranks_are_compared(script: Path, runs: dict[Path, list[Ended]]) -> None:
    """Rank 0 reports what the program declares, nothing of a clean one, and the other rank is silent."""
    (code, output, _), (other_code, other_output, _) = runs[script]
    found = json.loads(output)
    declared = declared_findings(script)
    lines = [{f"{place['role']}={place['line']}" for place in finding["places"]} for finding in found["findings"]]

    assert [finding["code"] for finding in found["findings"]] == [expected for expected, _ in declared]
    assert all(expected <= seen for (_, expected), seen in zip(declared, lines, strict=True))
    assert all(text in found["findings"][0]["remedy"] for text in _ADVICE.findall(script.read_text()))
    assert found["notes"] == []
    assert code == (1 if declared else 0)
    assert (other_code, other_output) == (0, "")


@pytest.mark.parametrize("script", ADVISED, ids=lambda path: path.stem)
def test_with_the_advice_applied_the_ranks_agree(script: Path, applied: dict[Path, list[Ended]]) -> None:
    """Nothing is found, and the loss of the first rank falls."""
    (code, output, _), _ = applied[script]
    found = json.loads(output[output.index("{\n") :])
    printed = next(line for line in output.splitlines() if line.startswith("loss "))
    first, last = map(float, printed.split()[1:])

    assert [finding["text"] for finding in found["findings"]] == []
    assert code == 0
    assert last < first
