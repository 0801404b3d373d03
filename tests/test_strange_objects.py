"""Whatever the objects of a program raise when they are asked, it is not asked."""

from pathlib import Path

import pytest
from runs import gradinspect, python
from strange_objects import PROGRAM

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        ("trace", 0),
        ("export -o graph.html -o graph.svg -o graph.json --force", 0),
        ("memory --iterations 2", 0),
        ("grads --steps 2", 0),
        ("step --report steps.md --force", 0),
        ("check", 1),
        ("fit", 0),
        ("plan --fit 1MiB", 0),
    ],
)
def test_a_program_of_strange_objects(verb: str, code: int, tmp_path: Path) -> None:
    """In variables, attributes, arguments, results, contexts and lists: every verb does what it does for others."""
    script = tmp_path / "strange.py"
    script.write_text(PROGRAM)
    plain = python(script, cwd=tmp_path)
    name, *options = verb.split()
    done = gradinspect(name, script, *options, cwd=tmp_path)

    assert (plain.returncode, plain.stderr) == (0, "")
    assert "Error" not in done.stderr
    assert done.returncode == code, done.stderr
