"""Which files of a program are kept, and which of their comments."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from factories import make_finding
from msgspec.structs import replace

from gradinspect.checks.evidence import program_files as program_files_module
from gradinspect.checks.evidence.program_files import maker_line, program_files
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


def test_the_one_line_that_makes_a_module_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the name of its class; of several lines it is not known which."""
    script = tmp_path / "train.py"
    script.write_text("norm = nn.LayerNorm(\n    1)\nfirst = Linear(1, 2)\nsecond = nn.Linear(2, 1)\n")
    monkeypatch.setattr(program_files_module, "own_sources", lambda _name: [str(script)])
    found = maker_line("LayerNorm", tmp_path)

    assert found is not None
    assert (found.file, found.line, found.code) == ("train.py", 1, "norm = nn.LayerNorm(")
    assert [maker_line(name, tmp_path) for name in ("Linear", "Conv2d", "")] == [None, None, None]
