"""Every way to name a program gives it the `__main__` that python gives it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from runs import MEASURING, gradinspect, unmeasured

PROGRAM = """
import sys
loaded = sorted(sys.modules)
import json, os, traceback
facts = {name: repr(globals().get(name)).split(" at 0x")[0] for name in (
    "__name__", "__file__", "__package__", "__spec__", "__cached__", "__builtins__", "__doc__")}
print(json.dumps([facts, type(__loader__).__name__, sys.argv, sys.path, loaded, sorted(globals())]))
import torch
def compute():
    return (torch.ones(2, requires_grad=True) * 2).sum()
compute().backward()
print("done")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the program under every kind of name."""
    (tmp_path / "train.py").write_text(PROGRAM)
    for package in ("folder", "package"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__main__.py").write_text(PROGRAM)
    (tmp_path / "package" / "__init__.py").touch()
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    (tmp_path / "bare").write_bytes((tmp_path / "train.py").read_bytes())
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train.py", "folder", "app.pyz", "bare", "-", "-m package"])
def test_a_program_is_what_python_makes_of_it(name: str, project: Path) -> None:
    """Its names, arguments, search path and loaded modules; and the report has its lines."""
    typed = PROGRAM if name == "-" else ""
    words = name.split()
    plain = subprocess.run(
        [sys.executable, *words, "a", "--b"], capture_output=True, text=True, input=typed, cwd=project, check=True,
        env=unmeasured(),
    )  # fmt: skip
    is_new = name not in {"train.py", "-"}  # what runpy loads must not be loaded already
    done = gradinspect(
        "trace", "--continue", *words, "--", "a", "--b", cwd=project, typed=typed, is_measured=False,
        is_new=is_new or MEASURING[0] in os.environ,  # coverage has loaded what a fork has
    )  # fmt: skip
    facts, end, *report = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    expected, actual = json.loads(plain.stdout.splitlines()[0]), json.loads(facts)
    loaded, seen = set(expected.pop(4)), set(actual.pop(4))

    assert expected == actual
    seen = {name for name in seen if name in loaded or not name.startswith("encodings.")}  # codecs stay registered

    assert not {"torch", "rich", "typing"} & seen
    assert seen == loaded or ("runpy" in seen and seen <= loaded)
    assert end == "done"
    assert "compute().backward()" in report[0]
    assert any("SumBackward0" in line and ":10" in line for line in report)


def test_a_compiled_file_runs(tmp_path: Path) -> None:
    """As `python train.pyc` does; there are no lines to show."""
    source = tmp_path / "train.py"
    source.write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-b", "train.py"], cwd=tmp_path, check=True)
    source.unlink()
    done = gradinspect("trace", "train.pyc", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "MulBackward0" in done.stdout


def test_a_package_that_exits_while_it_is_found(tmp_path: Path) -> None:
    """Its status is the program's."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import sys\nsys.exit(4)\n")
    done = gradinspect("trace", "--continue", "-m", "package", cwd=tmp_path)

    assert done.returncode == 4
    assert "Traceback" not in done.stderr


WARNING = """
import warnings
for level in (1, 2, 3, 9):
    warnings.warn(f"of level {level}", stacklevel=level)
"""


@pytest.mark.parametrize("words", ["-m package", "-m package.part", "folder", "app.pyz"])
def test_what_runpy_runs_is_called_by_runpy(words: str, tmp_path: Path) -> None:
    """Warnings of a higher level and the traceback have its lines; so has what it warns of itself."""
    package = tmp_path / "package"
    for folder in (package, tmp_path / "folder"):
        folder.mkdir()
        (folder / "__main__.py").write_text(f"{WARNING}1 / 0\n")
    (package / "__init__.py").write_text(f"{WARNING.replace('(1, 2, 3, 9)', '(1, 2)')}from . import part\n")
    (package / "part.py").write_text(f"{WARNING}if __name__ == '__main__':\n    1 / 0\n")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", f"{WARNING}1 / 0\n")
    plain = subprocess.run(
        [sys.executable, *words.split()], capture_output=True, text=True, cwd=tmp_path, check=False, env=unmeasured()
    )
    done = gradinspect("trace", *words.split(), cwd=tmp_path, is_measured=False)
    *lines, sentence = done.stderr.splitlines()

    assert "<frozen runpy>" in plain.stderr
    assert lines == plain.stderr.splitlines()
    assert sentence.startswith("gradinspect: The script failed before any backward call")
