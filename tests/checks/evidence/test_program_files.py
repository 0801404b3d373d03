"""Which files of a program are kept, and which of their comments."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from factories import make_finding
from msgspec.structs import replace

from gradinspect.checks.evidence.program_files import program_files
from gradinspect.checks.findings import ProgramFile
from gradinspect.recording.frames import FrameTable


def kept(folder: Path, *names: str, line: int = 1) -> list[ProgramFile]:
    """Return the files of a program that was imported from a folder, with findings on a line of some."""
    findings = [
        replace(finding, places=tuple(replace(place, file=name) for place in finding.places))
        for name in names
        for finding in [make_finding("GI101", line)]
    ]
    return [file for file in program_files(FrameTable(), findings, folder) if file.path.startswith(str(folder))]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Import three files, one of them twice, and things that are no modules of files."""
    sources = {
        "a_train": "x = 1  # first\ny = 2\nz = 3  # third\n",
        "b_ignores": "x = 1  # gradinspect: ignore[GI101]\n",
        "c_plain": "x = 1\n",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
        for module in (name, f"{name}_again"):
            found = ModuleType(module)
            found.__file__ = str(tmp_path / f"{name}.py")
            monkeypatch.setitem(sys.modules, module, found)
    binary = ModuleType("d_binary")
    binary.__file__ = str(tmp_path / "d_binary.so")
    monkeypatch.setitem(sys.modules, "d_binary", binary)
    monkeypatch.setitem(sys.modules, "e_nothing", ModuleType("e_nothing"))
    monkeypatch.setitem(sys.modules, "f_object", object())
    return tmp_path


def test_files_that_are_named_or_ignore_something_are_kept_once(program: Path) -> None:
    """Of the lines that findings name, the comments."""
    ignoring, named = kept(program), kept(program, "a_train.py", "c_plain.py", line=3)

    assert [(file.name, len(file.ignores), file.comments) for file in ignoring] == [("b_ignores.py", 1, ())]
    assert [(file.name, [line for line, _ in file.comments]) for file in named] == [
        ("a_train.py", [3]), ("b_ignores.py", []), ("c_plain.py", []),
    ]  # fmt: skip
    assert [Path(file.path) for file in named] == [program / file.name for file in named]
