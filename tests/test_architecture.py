"""What may be imported, and when: the package reads captures where there is no torch, and answers --help at once."""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gradinspect"
PARTS = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if "capture" not in path.parts and path.stem != "__main__"
)


def run_python(program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_all_but_capture_imports_without_torch() -> None:
    """In a process where an import of torch fails."""
    done = run_python(
        f"import importlib, sys; sys.modules['torch'] = None\nfor name in {PARTS!r}: importlib.import_module(name)"
    )

    assert done.stderr == ""
    assert len(PARTS) > 40


@pytest.mark.parametrize("heavy", ["torch", "graphviz", "yaml", "textual", "gradinspect.renderers"])
def test_help_loads_nothing_heavy(heavy: str) -> None:
    """Who asks for help does not wait for what he has not asked for."""
    done = run_python(
        "import contextlib, io, sys; from gradinspect.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): assert main(['--help']) == 0\n"
        f"assert {heavy!r} not in sys.modules"
    )

    assert done.returncode == 0, done.stderr


def test_the_public_names_are_there() -> None:
    """Each one is found, and no other is promised."""
    done = run_python(
        "import gradinspect; [getattr(gradinspect, name) for name in gradinspect.__all__]\n"
        "print(*sorted(gradinspect.__all__))"
    )

    assert done.stdout.split() == ["GradInspectError", "Graph", "Recorder", "capture_graph", "read_graph"], done.stderr
