"""What the documents say can be typed, and prints what they show."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from factories import product_plus_two, residual_blocks, two_layers
from runs import gradinspect, python

from gradinspect.cli.options.command_line import split_arguments
from gradinspect.cli.program import app
from gradinspect.storage import encode_graph

ROOT = Path(__file__).parent.parent
SCREENS = runpy.run_path(str(ROOT / "docs" / "screens.py"))
DOCUMENTS = SCREENS["DOCUMENTS"]
WITH_COMMANDS = [*DOCUMENTS, *sorted((ROOT / "samples").glob("*.py")), *sorted((ROOT / "gradinspect").rglob("*.py"))]
COMMAND = re.compile(r"(?:`|^ *\$ |^ +|Try: )(gradinspect [a-z]+ [^`\n|\x22]*)", re.MULTILINE)
RUN = [ROOT / "README.md", ROOT / "docs" / "library.md", ROOT / "docs" / "tutorials" / "notebook.md"]
# How many calls are seen in a time, and how many batches the workers of a DataLoader have made at the peak.
SILENCED = " 2>/dev/null"
VARYING = re.compile(
    r"(?<=No problems found in )[0-9]+(?= backward calls)|(?<=peak       )[0-9.]+(?= KiB in the optimizer step)"
    r"|, [0-9.]+ KiB temporary\b|\b[0-9.]+ KiB temporary, "
)
ESTIMATE = re.compile(  # of plan, while it goes on
    r"(first estimate, not run: |first that fits, run: |tried \d+ plans? in ).*\n(?:  \S.*\n)*"
)
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """List every command in every document and docstring, with where it stands."""
    return [
        (str(path.relative_to(ROOT)), command.strip().removesuffix(SILENCED))
        for path in WITH_COMMANDS
        for command in COMMAND.findall(path.read_text())
        if not command.startswith(("gradinspect trace:", "gradinspect trace SCRIPT"))
    ]


def test_every_command_can_be_typed() -> None:
    """The command line takes its options, and the sample it names is there."""
    group = typer.main.get_command(app)
    found = commands()
    for place, command in found:
        ours, theirs = split_arguments(shlex.split(command)[1:])
        verb = group.get_command(None, ours[0])  # type: ignore[attr-defined]
        assert verb is not None, (place, command)
        context = verb.make_context(ours[0], ours[1:], obj=theirs)
        file = str(context.params.get("source")).partition(":")[0]
        assert not file.startswith(("samples/", "tests/")) or (ROOT / file).is_file(), (place, command)

    assert len(found) > 60


def test_the_code_in_the_architecture_runs() -> None:
    """What it shows of the way from a program to a report is the code itself."""
    shown = EXAMPLE.findall((ROOT / "docs" / "architecture.md").read_text())
    code = [(ROOT / "gradinspect" / "cli" / name).read_text() for name in ("running/pipeline.py", "trace.py")]

    assert [part in file for part, file in zip(shown, code, strict=True)] == [True, True]


def test_the_table_of_codes_is_up_to_date() -> None:
    """Every rule with its declaration; `python docs/codes.py` writes it."""
    script = runpy.run_path(str(ROOT / "docs" / "codes.py"))

    assert script["codes_page"]() == script["FILE"].read_text(encoding="utf-8"), "Run: python docs/codes.py"


def test_the_list_of_questions_has_each_of_them() -> None:
    """Each heading once, in its own words."""
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.*)\]\(#(.*)\)$", text, re.MULTILINE)

    assert sorted(name for name, _ in listed) == sorted(re.findall(r"^## (.*)$", text, re.MULTILINE))
    assert [link for name, link in listed if link != re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")] == []


def test_the_reference_of_the_library_is_up_to_date() -> None:
    """Every public name with its docstring; `python docs/library.py` writes it."""
    script = runpy.run_path(str(ROOT / "docs" / "library.py"))

    assert script["library_page"]() == script["FILE"].read_text(encoding="utf-8"), "Run: python docs/library.py"


def test_the_reference_of_the_verbs_is_up_to_date() -> None:
    """Every verb with its options; `python docs/verbs.py` writes it."""
    script = runpy.run_path(str(ROOT / "docs" / "verbs.py"))

    assert script["verbs_page"]() == script["FILE"].read_text(encoding="utf-8"), "Run: python docs/verbs.py"


def test_the_schema_of_capture_files_is_up_to_date() -> None:
    """And what we write follows it; `python docs/schema.py` writes it."""
    script = runpy.run_path(str(ROOT / "docs" / "schema.py"))
    text = script["FILE"].read_text(encoding="utf-8")
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, which nbclient brings, is not installed.")

    assert script["capture_schema"]() == text, "Run: python docs/schema.py"
    for record in (product_plus_two(), two_layers(), residual_blocks(3)):
        jsonschema.validate(json.loads(encode_graph(record, compressed=False)), json.loads(text))


@pytest.mark.slow
@pytest.mark.parametrize("document", RUN, ids=lambda path: path.name)
def test_the_examples_of_the_library_run(document: Path, tmp_path: Path) -> None:
    """Those of one document after each other, as a reader types them; their assertions hold."""
    program = tmp_path / "examples.py"
    program.write_text("\n".join(EXAMPLE.findall(document.read_text(encoding="utf-8"))))
    done = python(program, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param(*found, id=found[0][12:40])
        for path in DOCUMENTS
        for found in SCREENS["SCREEN"].findall(path.read_text())
    ],
)
def test_the_documents_show_what_is_printed(command: str, shown: str) -> None:
    """Each screen in the documents, character for character; `python docs/screens.py` writes them.

    But for how many calls `check` has watched: it ends by the time that they took; nor is what `plan` says meanwhile.
    """
    ours, _, filters = command.partition(" | ")
    done = gradinspect(*shlex.split(ours.removesuffix(SILENCED))[1:], cwd=ROOT)
    errors = "" if ours.endswith(SILENCED) else ESTIMATE.sub("", done.stderr)
    printed = subprocess.run(
        ["bash", "-c", filters or "cat"], input=done.stdout, capture_output=True, text=True, timeout=300, check=True
    )

    assert (errors, printed.stderr) == ("", "")
    assert VARYING.sub("", printed.stdout.rstrip()) == VARYING.sub("", shown.rstrip())


@pytest.mark.slow
def test_the_pictures_are_as_the_tool_draws_them() -> None:
    """`python docs/make_pictures.py` makes them anew."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_pictures.py", "--check"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "All pictures are up to date.\n"), done.stderr
