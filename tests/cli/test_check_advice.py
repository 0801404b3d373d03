"""A broken program is found and advised; with the advice applied nothing is found, and the loss falls.

A program under tests/check_programs/advice is two in one: lines that end with `# -` belong to the broken one, those
that end with `# +` to the one with the advice applied. Its last line prints the first and the last loss.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from check_expectations import options_of, variant
from check_runs import check_all
from turns import one_in

pytestmark = pytest.mark.slow

PROGRAMS = sorted((Path(__file__).parent.parent / "check_programs" / "advice").glob("*.py"))
_HEADER = re.compile(r"^# (expect|why|advice|never|lines): (.+)$", re.MULTILINE)


def declared(program: Path, kind: str) -> list[str]:
    """List what a program declares of one kind."""
    return [value for key, value in _HEADER.findall(program.read_text()) if key == kind]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run every program that is asked for, with the mistake and with the advice applied, in one process that forks."""
    tests = [test for test in request.session.items if test.path == request.path and isinstance(test, pytest.Function)]
    programs: set[Path] = {test.callspec.params["program"] for test in tests}  # type: ignore[misc]
    asked = {}
    for program in sorted(programs):
        for name, other in (("broken", "# +"), ("applied", "# -")):
            script = tmp_path_factory.getbasetemp() / name / program.name
            script.parent.mkdir(exist_ok=True)
            script.write_text(variant(program.read_text(), other))
            options = options_of(program)
            steps = [] if "--compiled" in options else ["--steps", "3"]  # which compares one call
            more = ["--continue", *steps] if name == "applied" else []
            words = ["check", str(script), "--format", "json", *options, *more]
            asked[f"{program.stem} {name}"] = words
    return check_all(asked)


def findings_in(output: str) -> list[Any]:
    """Read the findings after what the program printed."""
    found: list[Any] = json.loads(output[output.index("{\n") :])["findings"]
    return found


@pytest.mark.parametrize("program", one_in(16, PROGRAMS), ids=lambda path: path.stem)
def test_a_mistake_is_found_with_the_right_advice(program: Path, runs: dict[str, Any]) -> None:
    """The code that the program declares, what its advice says, and what it must not say."""
    run = runs[f"{program.stem} broken"]
    found = findings_in(run["out"])
    words = " ".join(f"{one['text']} {one['remedy']}" for one in found)

    assert [one["code"] for one in found] == declared(program, "expect")
    for lines in declared(program, "lines"):
        assert set(lines.split()) <= {f"{place['role']}={place['line']}" for place in found[0]["places"]}
    for text in declared(program, "why"):
        assert text in found[0]["text"]
    for text in declared(program, "advice"):
        assert text in found[0]["remedy"]
    for text in declared(program, "never"):
        assert text not in words


@pytest.mark.parametrize("program", one_in(16, PROGRAMS), ids=lambda path: path.stem)
def test_with_the_advice_applied_nothing_is_found_and_the_loss_falls(program: Path, runs: dict[str, Any]) -> None:
    """The last loss that the repaired program prints is lower than the first."""
    run = runs[f"{program.stem} applied"]
    printed = next(line for line in run["out"].splitlines() if line.startswith("loss "))
    first, last = map(float, printed.split()[1:])

    assert [one["text"] for one in findings_in(run["out"])] == []
    assert run["code"] == 0
    assert last < first
