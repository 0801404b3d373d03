"""`check` as a lint that people keep on: ignore comments, settings, a baseline, and fingerprints, in whole programs."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from runs import gradinspect
from sarif_log import Log

# What backward of the loss would fail on is caught, so that the program ends well.
PROGRAM = """\
import torch
from helpers import scaled

x = torch.ones(3, requires_grad=True)
unused = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD([x, *unused.parameters()], lr=0.1)


def spoil(value):
    y = value.exp()
    y += 1
    return y.sum()


try:
    (spoil(x) + scaled(x)).backward()
except RuntimeError:
    print("failed as expected")
"""
HELPERS = "def scaled(x):\n    z = x.sigmoid()\n    z *= 2\n    return z.sum()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a script and a module of its own; two findings of one code."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(PROGRAM)
    (tmp_path / "src" / "helpers.py").write_text(HELPERS)
    (tmp_path / "pyproject.toml").write_text("[tool.gradinspect]\nselect = ['GI1']\n")
    return tmp_path


def check(project: Path, *options: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Check the script of a project."""
    return gradinspect("check", project / "src" / "train.py", *options, cwd=cwd)


def document(project: Path, *options: str, cwd: Path | None = None) -> dict[str, Any]:
    """Return what `--format json` prints after what the program prints."""
    printed = check(project, *options, "--format", "json", cwd=cwd).stdout
    parsed: dict[str, Any] = json.loads(printed[printed.index("{\n") :])
    return parsed


def change(file: Path, old: str, new: str) -> None:
    """Edit a line of a program."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_comments_ignore_findings_in_any_file(project: Path) -> None:
    """On either of the lines that a finding names; nothing is left, so the exit code is 0."""
    change(project / "src" / "train.py", "y = value.exp()", "y = value.exp()  # gradinspect: ignore[GI101] a test")
    change(project / "src" / "helpers.py", "    z *= 2", "    # gradinspect: ignore[GI101]\n    z *= 2")
    done = check(project)

    assert done.stdout == (
        "failed as expected\nNot reported: 2 ignored by comments.\n"
        "No other problems found in 1 backward call of train.py\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_left_is_reported(project: Path) -> None:
    """With exit code 1, and JSON says by what the other one was suppressed."""
    change(project / "src" / "helpers.py", "    z *= 2", "    z *= 2  # gradinspect: ignore[GI102, GI101] a test")
    done = document(project)

    assert [place["line"] for finding in done["findings"] for place in finding["places"]] == [10, 16, 11, 16, 16]
    assert [finding["suppression"] for finding in done["suppressed"]] == [
        {"kind": "comment", "place": "helpers.py:3", "reason": "a test"}
    ]
    assert done["notes"] == ["helpers.py:3: unused 'gradinspect: ignore[GI102]': no GI102 was found there. Remove it."]
    assert check(project).returncode == 1


def test_unused_comments_are_reported_where_the_program_ran(project: Path) -> None:
    """Not in a branch that was not taken, for a code that was not selected, or one that needs an option."""
    train = project / "src" / "train.py"
    change(train, "unused = torch", "if not x.numel():\n    x = x * 2  # gradinspect: ignore[GI101]\nunused = torch")
    change(train, "lr=0.1)", "lr=0.1)  # gradinspect: ignore[GI103, GI201, GI301]")
    change(train, "print(", "print(  # gradinspect: ignore[GI101]\n        ")

    assert document(project)["notes"] == [
        "train.py:8: unused 'gradinspect: ignore[GI103]': no GI103 was found there. Remove it."
    ]


def test_unused_comments_are_not_reported_of_part_of_a_run(project: Path) -> None:
    """A program that failed might have shown the mistake later, and so might a second call."""
    change(project / "src" / "train.py", "lr=0.1)", "lr=0.1)  # gradinspect: ignore[GI103]")

    assert document(project, "--steps", "1")["notes"] == []
    change(project / "src" / "train.py", "except RuntimeError", "except ValueError")
    assert document(project)["notes"] == []


def test_unused_comments_are_not_reported_of_a_model_alone(tmp_path: Path) -> None:
    """The program that trains it may need them."""
    model = tmp_path / "model.py"
    model.write_text(
        "import torch\ndef f(x):\n    return x.requires_grad_().exp().sum()  # gradinspect: ignore[GI103]\n"
    )
    done = gradinspect("check", f"{model}:f", "--input", "3")

    assert done.stdout.startswith("No problems found in 1 backward call")
    assert done.returncode == 0


@pytest.mark.slow
def test_settings_and_the_command_line(project: Path) -> None:
    """`--select` sets the file's choice aside, `--skip` adds to it."""

    def codes(*options: str) -> set[str]:
        return {finding["code"] for finding in document(project, *options)["findings"]}

    assert codes() == {"GI101"}
    assert codes("--skip", "GI101") == codes("--select", "GI3") == set()
    change(project / "pyproject.toml", "select = ['GI1']", "skip = ['GI101']")
    assert codes("--skip", "GI6") == set()
    assert codes("--select", "GI1") == {"GI101"}


def test_a_wrong_code_in_the_settings_is_named(project: Path) -> None:
    """With the key and the file, before anything runs."""
    file = project / "pyproject.toml"
    file.write_text("[tool.gradinspect]\nskip = ['GI99']\n")
    done = check(project)

    assert done.stderr.startswith(f"gradinspect: 'skip' in '{file}': No rule has the code 'GI99'. Closest ")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.slow
def test_a_baseline(project: Path) -> None:
    """Written, then nothing is reported; a new finding is, and one that was mended is no longer needed."""
    change(project / "pyproject.toml", "select", "baseline = 'known.json'\nselect")
    missing = check(project)
    wrote = check(project, "--write-baseline")
    known = check(project, cwd=project)

    assert missing.returncode == 2
    absent = f"The baseline '{project / 'known.json'}' does not exist."
    assert missing.stderr.startswith(f"gradinspect: {absent} Add --write-baseline")
    assert wrote.stderr == f"known.json: 2 findings, 2 added, 0 removed\nWrote {project / 'known.json'}\n"
    assert wrote.returncode == known.returncode == 0
    assert "Not reported: 2 known from known.json.\nNo other problems found in 1 backward call" in known.stdout

    change(project / "src" / "train.py", "y += 1", "y = y + 1")
    change(project / "src" / "helpers.py", "    return", "    z += 1\n    return")
    later = document(project)
    assert [(finding["code"], finding["places"][0]["file"]) for finding in later["findings"]] == [
        ("GI101", "helpers.py")
    ]
    assert later["notes"] == [
        "No longer needed in known.json: GI101 src/helpers.py:3, GI101 src/train.py:11. --write-baseline removes them."
    ]


def test_a_baseline_needs_a_name(project: Path) -> None:
    """And an ordinary file is not overwritten by one."""
    unnamed = check(project, "--write-baseline")
    other = check(project, "--write-baseline", "--baseline", str(project / "pyproject.toml"))

    assert unnamed.stderr == "gradinspect: '--write-baseline' has no file to write. Name one: --baseline FILE\n"
    assert other.stderr.endswith("pyproject.toml' is not a baseline of gradinspect. Give another file.\n")
    assert unnamed.returncode == other.returncode == 2
    assert "[tool.gradinspect]" in (project / "pyproject.toml").read_text()


def fingerprints(project: Path, cwd: Path | None = None) -> list[str]:
    """Return the fingerprints of all findings."""
    return [finding["fingerprint"] for finding in document(project, cwd=cwd)["findings"]]


def test_fingerprints_last(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """When lines move, comments come, the project moves, and from wherever it is run; each finding has its own."""
    before = fingerprints(project)
    moved = tmp_path_factory.mktemp("elsewhere") / "again"
    shutil.copytree(project, moved)
    for name in ("train.py", "helpers.py"):
        file = moved / "src" / name
        file.write_text("import os  # a new line\n\n\n" + file.read_text())
    change(moved / "src" / "train.py", "    y += 1", "    y  +=  1  # adds one")

    assert len(set(before)) == len(before) == 2
    assert fingerprints(moved, cwd=moved / "src") == before


def test_files_beside_the_screen(project: Path) -> None:
    """SARIF and JSON, whatever the program prints; an earlier file is kept."""
    change(project / "src" / "helpers.py", "    z *= 2", "    z *= 2  # gradinspect: ignore[GI101]")
    change(project / "src" / "train.py", "import torch\n", "import sys, torch\nsys.path[:] = [sys.path[0]]\n")
    (project / ".git").touch()
    sarif, document = project / "out.sarif", project / "out.json"
    done = check(project, "-o", str(sarif), "-o", str(document))
    (run,) = msgspec.json.decode(sarif.read_bytes(), type=Log).runs
    places = [result.locations[0].physical_location for result in run.results]

    assert done.stdout.startswith("failed as expected\nGI101  saved tensor modified in place\n")
    assert [(at.artifact_location.uri, at.region.start_line) for at in places] == [
        ("src/train.py", 12),
        ("src/helpers.py", 3),
    ]
    assert [len(result.suppressions) for result in run.results] == [0, 1]
    assert [len(json.loads(document.read_text())[key]) for key in ("findings", "suppressed")] == [1, 1]
    assert (
        check(project, "-o", str(sarif)).stderr
        == f"gradinspect: The file '{sarif}' exists. Use --force to overwrite it.\n"
    )


def test_a_format_of_a_file_is_known(project: Path) -> None:
    """Before anything runs."""
    done = check(project, "-o", "x.txt")

    assert done.stderr == "gradinspect: The format of 'x.txt' is unknown. Supported extensions: .sarif .json.\n"
    assert (done.returncode, done.stdout) == (2, "")


def test_a_program_on_standard_input_has_comments_too() -> None:
    """It is no file, and its lines are read all the same."""
    text = "import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1  # gradinspect: ignore[GI101]\n"
    done = gradinspect(
        "check", "-", "--select", "GI1", typed=f"{text}try:\n    y.sum().backward()\nexcept RuntimeError: pass\n"
    )

    assert done.stdout.startswith("Not reported: 1 ignored by comments.\nNo other problems found in 1 backward call")
    assert done.returncode == 0
