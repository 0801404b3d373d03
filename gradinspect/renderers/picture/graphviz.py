"""Run Graphviz: DOT in, picture bytes out. The only renderer that starts a process.

The system's `dot` is preferred; `graphviz-pure`, installed with this package, is the fallback.

NOTE [No engine stops by itself]
Layout can take hours and a bitmap can exhaust memory, so each run has a time limit and ends with our process. Graphviz
also hides failures: it can return 0 with nothing written, or with an error on stderr and half a picture.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import NamedTuple

from graphviz.backend import dot_command

from gradinspect.errors import GradInspectError
from gradinspect.renderers.picture.child_process import run_child
from gradinspect.units import escape_control

INSTALL_HINT = "Install one: `pip install graphviz-pure`, or Graphviz itself from your system's packages."
MAX_STDERR_LINES = 3


class Engine(NamedTuple):
    """A Graphviz program."""

    program: Path
    writes_pdf: bool

    @property
    def measures_helvetica(self) -> bool:
        """Whether it takes text to be as wide as in Helvetica; `dot` asks the fonts of the machine."""
        return not self.writes_pdf


class LayoutError(Exception):
    """The engine timed out, ran out of memory, or failed; a coarser picture may work."""


def find_engine(path: str | None = None) -> Engine:
    """Find `dot` on a search path, or `graphviz-pure` in this Python environment, activated or not.

    Args:
        path: A search path in the format of PATH; None for PATH itself.

    Raises:
        GradInspectError: There is no Graphviz program.
    """
    dot = which("dot", path=path)
    if dot is not None:
        return Engine(Path(dot), writes_pdf=True)
    folders = os.pathsep.join((sysconfig.get_path("scripts"), str(Path(sys.executable).parent)))
    pure = which("graphviz-pure", path=folders) or which("graphviz-pure", path=path)
    if pure is None:
        raise GradInspectError("No Graphviz program was found.", INSTALL_HINT)
    return Engine(Path(pure), writes_pdf=False)


def lay_out(dot: str, output_format: str, engine: Engine, *, time_limit_s: float) -> bytes:
    """Lay out and draw DOT text.

    Raises:
        LayoutError: There is no complete picture.
    """
    return _run(dot, _command(engine, dot_command.command("dot", output_format)), engine, time_limit_s)


def draw_placed(dot: str, output_format: str, engine: Engine, *, time_limit_s: float, **values: str) -> bytes:
    """Draw DOT text in which everything has a position, as `lay_out` writes it with the format "dot".

    Args:
        dot: The text.
        output_format: What to write.
        engine: The program.
        time_limit_s: The limit.
        **values: Attributes of the graph.

    Raises:
        LayoutError: There is no complete picture.
    """
    command = _command(engine, dot_command.command("neato", output_format, neato_no_op=2))
    return _run(dot, command + [f"-G{name}={value}" for name, value in values.items()], engine, time_limit_s)


def _run(dot: str, command: list[str], engine: Engine, time_limit_s: float) -> bytes:
    try:
        returncode, content, stderr = run_child(command, dot.encode(), time_limit_s)
    except subprocess.TimeoutExpired:
        raise LayoutError(f"no picture after {time_limit_s:.0f} s") from None
    errors = [line for line in stderr.decode(errors="replace").splitlines() if "Error" in line]
    if returncode < 0:
        raise LayoutError(f"'{engine.program.name}' was killed by signal {-returncode}")
    if returncode or errors or not content:
        reason = "; ".join(errors[:MAX_STDERR_LINES]) or f"return code {returncode}, {len(content)} bytes written"
        raise LayoutError(f"'{engine.program.name}' failed: {escape_control(reason)}")
    return content


def _command(engine: Engine, words: Sequence[object]) -> list[str]:
    """Give the command that the graphviz package composed to the program that was found."""
    return [str(engine.program), *map(str, words[1:])]
