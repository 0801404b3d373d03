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
    (package / "__init__.py").write_text(f"{WARNING}from . import part\n")
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


FINDER = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "missing":
            raise ValueError("found by nobody")
sys.meta_path.insert(0, Finder())
import missing
"""
FAILING = {
    "bad.py": "x = (\n",
    "finder.py": FINDER,
    "by_name.py": "import importlib\nimportlib.import_module('fails.part')\n",
    "runs.py": "import runpy\nrunpy.run_module('package.bad', run_name='__main__')\n",
    "package/__init__.py": "",
    "package/bad.py": "x = (\n",
    "fails/__init__.py": "1 / 0\n",
    "fails/part.py": "",
    "lacks/__init__.py": "import not_there\n",
    "lacks/part.py": "",
    "folder/__main__.py": "x = (\n",
}


@pytest.mark.parametrize(
    "words",
    [
        "bad.py",
        "finder.py",
        "by_name.py",
        "runs.py",
        "-m package.bad",
        "-m fails.part",
        "-m lacks.part",
        "folder",
        "app.pyz",
    ],
)
def test_the_traceback_of_what_fails_while_it_is_found_is_pythons(words: str, tmp_path: Path) -> None:
    """Also the frames of Python's import that it shows: those of a file that cannot be compiled, or of a finder."""
    for name, text in FAILING.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "x = (\n")
    plain = subprocess.run(
        [sys.executable, *words.split()], capture_output=True, text=True, cwd=tmp_path, check=False, env=unmeasured()
    )
    done = gradinspect("trace", *words.split(), cwd=tmp_path, is_measured=False)
    *lines, sentence = done.stderr.splitlines()

    assert "Traceback" in plain.stderr or words == "bad.py"
    assert lines == plain.stderr.splitlines()
    assert sentence.startswith("gradinspect: The script failed before any backward call")
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "There is no module 'nothing' to run. Check its name and the current directory."),
        ("nothing.inside", "The module 'nothing.inside' cannot be imported: No module named 'nothing'."),
        (
            "package",
            "The module 'package' cannot be run: No module named package.__main__; 'package' is a package and cannot",
        ),
        ("sys", "The module 'sys' cannot be run: No code object available for sys."),
    ],
)
def test_a_module_that_cannot_be_run_is_named(name: str, sentence: str, tmp_path: Path) -> None:
    """In one sentence, with what runpy says of it."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    done = gradinspect("trace", "-m", name, cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith(f"gradinspect: {sentence}")
    assert len(done.stderr.splitlines()) == 1
