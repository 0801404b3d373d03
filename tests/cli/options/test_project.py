"""The project of a program, and the settings in its pyproject.toml; no program is run."""

import os
import re
from pathlib import Path

import pytest

from gradinspect.checks.findings import ProgramFile
from gradinspect.cli.options.project import name_of_program, project_of, relative_names
from gradinspect.errors import GradInspectError
from gradinspect.request import Request
from gradinspect.source import Expression, Module, Script, Source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a package in it, and a script in that."""
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "train.py").touch()
    return tmp_path


def write(file: Path, *lines: str) -> None:
    """Write a pyproject.toml with a table of ours."""
    file.write_text("\n".join(["[project]", 'name = "x"', "[tool.gradinspect]", *lines]))


def test_all_keys(folder: Path) -> None:
    """Each is read; a file is relative to the pyproject.toml."""
    write(
        folder / "pyproject.toml", 'select = ["GI1", "GI301"]', 'skip = ["GI102"]', "steps = 4", 'baseline = "b.json"'
    )
    settings = project_of(Script(folder / "src" / "pkg" / "train.py")).settings

    assert (settings.select, settings.skip, settings.steps) == (("GI1", "GI301"), ("GI102",), 4)
    assert settings.baseline == folder / "b.json"


def test_the_nearest_table_counts(folder: Path) -> None:
    """A pyproject.toml without our table is passed over, as ruff does, and is the root nevertheless."""
    write(folder / "pyproject.toml", "steps = 4")
    (folder / "src" / "pyproject.toml").write_text("[tool.other]\nsteps = 5\n")
    project = project_of(Script(folder / "src" / "pkg" / "train.py"))

    assert project.settings.steps == 4
    assert project.root == folder / "src"


@pytest.mark.parametrize("source", [Module("pkg.train"), Expression("pkg.train", "Net()"), Script(Path("-"))])
def test_without_a_script_the_current_folder_counts(
    source: Source, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those above it."""
    write(folder / "pyproject.toml", "steps = 4")
    monkeypatch.chdir(folder / "src")

    assert project_of(source).settings.steps == 4


def test_a_script_is_found_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own folder counts, not the current one, whichever way the script is named."""
    write(folder / "pyproject.toml", "steps = 4")
    other = folder / "other"
    other.mkdir()
    write(other / "pyproject.toml", "steps = 5")
    monkeypatch.chdir(other)

    assert project_of(Script(Path("../src/pkg/train.py"))).settings.steps == 4
    assert project_of(Expression("../src/pkg/train.py", "Net()")).settings.steps == 4


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["selct = []"], "'selct' in [tool.gradinspect] of '{}' is not a known key. Closest match: select."),
        (["x = 1"], "'x' in [tool.gradinspect] of '{}' is not a known key. Known keys: select, skip, steps, baseline."),
        (['select = "GI1"'], "'select' in [tool.gradinspect] of '{}' must be a list of codes, not 'GI1'. Correct it."),
        (["skip = [1]"], "'skip' in [tool.gradinspect] of '{}' must be a list of codes, not [1]. Correct it."),
        (['steps = "2"'], "'steps' in [tool.gradinspect] of '{}' must be a whole number of at least 1, not '2'."),
        (["steps = 0"], "'steps' in [tool.gradinspect] of '{}' must be a whole number of at least 1, not 0."),
        (["steps = true"], "'steps' in [tool.gradinspect] of '{}' must be a whole number of at least 1, not True."),
        (["baseline = 1"], "'baseline' in [tool.gradinspect] of '{}' must be the name of a file, not 1. Correct it."),
        (["baseline = ''"], "'baseline' in [tool.gradinspect] of '{}' must be the name of a file, not ''. Correct it."),
        (["steps = "], "'{}' is not valid TOML: Invalid value (at "),
    ],
)
def test_what_is_wrong_is_one_sentence(lines: list[str], problem: str, folder: Path) -> None:
    """With the file and the key."""
    write(folder / "pyproject.toml", *lines)

    with pytest.raises(GradInspectError, match=re.escape(problem.format(folder / "pyproject.toml"))):
        project_of(Script(folder / "src" / "pkg" / "train.py"))


@pytest.mark.parametrize("content", [b"\xff", b"[tool]\ngradinspect = 3\n", b"x = " + b"[" * 5000])
def test_a_damaged_file_is_one_sentence(content: bytes, folder: Path) -> None:
    """Bytes that are no text, a table that is a number, brackets without end."""
    (folder / "pyproject.toml").write_bytes(content)

    with pytest.raises(GradInspectError, match=r"pyproject\.toml'"):
        project_of(Script(folder / "src" / "pkg" / "train.py"))


def test_a_tool_that_is_no_table_is_not_ours(folder: Path) -> None:
    """Another program may complain of it."""
    (folder / "pyproject.toml").write_text("tool = 3\n")

    assert project_of(Script(folder / "src" / "pkg" / "train.py")).settings.file is None


@pytest.mark.parametrize(
    ("files", "here", "root", "repository"),
    [
        ([], "/", "src/pkg", "/"),
        ([], "other", "src/pkg", "src/pkg"),
        ([".git"], "src", ".", "."),
        (["src/pyproject.toml"], "other", "src", "src"),
        (["src/pyproject.toml"], ".", "src", "."),
        ([".git", "src/pyproject.toml"], "src", "src", "."),
    ],
)
def test_roots(  # the parametrized ones
    files: list[str], here: str, root: str, repository: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's for fingerprints, the repository's for paths, for which others stand in."""
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / here)
    for name in files:
        (folder / name).touch()
    project = project_of(Script(folder / "src" / "pkg" / "train.py"))

    assert project.root == folder / root
    assert project.repository == folder / repository


def test_files_are_named_relative_to_a_folder(folder: Path) -> None:
    """Also through a link; those elsewhere, and those of no file, keep their names."""
    os.symlink(folder / "src", folder / "link")  # noqa: PTH211  # as users make them
    paths = {"train.py": folder / "link" / "pkg" / "train.py", "lib/x.py": Path("/lib/x.py")}
    files = [ProgramFile(name=name, path=str(path)) for name, path in paths.items()]
    name = relative_names([*files, ProgramFile(name="<stdin>", path="")], folder / "src")

    assert [name(file) for file in ("train.py", "lib/x.py", "<stdin>", "?")] == [
        "pkg/train.py", "lib/x.py", "<stdin>", "?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        (Script(Path("src/pkg/train.py")), ("--lr", "0.1 5"), "src/pkg/train.py --lr '0.1 5'"),
        (Expression("src/pkg/train.py", "Net()"), (), "src/pkg/train.py:Net()"),
        (Module("pkg.train"), (), "-m pkg.train"),
        (Script(Path("-")), (), "label"),
    ],
)
def test_a_program_has_the_same_name_everywhere(
    source: Source, arguments: tuple[str, ...], expected: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to its project, with its arguments."""
    monkeypatch.chdir(folder)

    assert name_of_program(Request(source=source, label="label", arguments=arguments), folder) == expected
