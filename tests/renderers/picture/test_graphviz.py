"""Finding and running Graphviz."""

import sys
import sysconfig
import time
from pathlib import Path

import pytest
from graphviz.backend import dot_command

from gradinspect.errors import GradInspectError
from gradinspect.renderers.picture.graphviz import Engine, LayoutError, find_engine, lay_out


def program(folder: Path, text: str, name: str = "dot") -> Path:
    """Write a program for a test to find."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return path


def test_graphviz_package_names_its_program_in_a_variable() -> None:
    """The graphviz package takes its program from a module variable and puts it first in the command."""
    assert Path("dot") == dot_command.DOT_BINARY
    assert [Path("dot"), "-Kdot", "-Tsvg"] == dot_command.command("dot", "svg")


def test_package_is_left_as_it_was() -> None:
    """Drawing leaves the user's own use of the graphviz package alone."""
    lay_out("digraph { a -> b }", "svg", find_engine(path=""), time_limit_s=30)

    assert Path("dot") == dot_command.DOT_BINARY


def test_dot_is_preferred(tmp_path: Path) -> None:
    """A `dot` on the search path is taken; it writes PDF."""
    dot = program(tmp_path, "")

    assert Engine(dot, writes_pdf=True) == find_engine(path=str(tmp_path))


def test_pure_is_found_where_pip_put_it() -> None:
    """Without `dot`, graphviz-pure of this environment is found, also when the environment is not on the path."""
    engine = find_engine(path="")

    assert not engine.writes_pdf
    assert Path(sysconfig.get_path("scripts")) / "graphviz-pure" == engine.program.with_suffix("")


def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without any program the error says what to install."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(GradInspectError, match="pip install graphviz-pure"):
        find_engine(path=str(tmp_path))


def test_draws() -> None:
    """DOT becomes a picture."""
    assert b"</svg>" in lay_out("digraph { a -> b }", "svg", find_engine(), time_limit_s=30)


def test_broken_text_is_an_error() -> None:
    """What the program says on stderr is in the error."""
    with pytest.raises(LayoutError, match="syntax error"):
        lay_out("digraph {", "svg", find_engine(), time_limit_s=30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 bytes written"),
        ("import sys; print('half'); sys.stderr.write('Error: bad label')", "bad label"),
        ("import sys; print('half'); sys.exit(3)", "return code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9"),
    ],
)
def test_half_a_picture_is_none(tmp_path: Path, text: str, message: str) -> None:
    """Nothing written, an error on stderr, a return code and a signal are all failures."""
    engine = Engine(program(tmp_path, text), writes_pdf=True)

    with pytest.raises(LayoutError, match=message):
        lay_out("digraph {}", "svg", engine, time_limit_s=30)


@pytest.mark.slow
def test_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    """A program that takes too long is ended with the programs it started."""
    mark = tmp_path / "alive"
    child = f"import time, pathlib; time.sleep(1.5); pathlib.Path({str(mark)!r}).touch()"
    text = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    engine = Engine(program(tmp_path, text), writes_pdf=True)

    with pytest.raises(LayoutError, match="no picture after"):
        lay_out("digraph {}", "svg", engine, time_limit_s=0.5)
    time.sleep(1.5)
    assert not mark.exists()
