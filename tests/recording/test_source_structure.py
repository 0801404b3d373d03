"""What surrounds a line in its file."""

import ast
from pathlib import Path

from gradinspect.recording.source_structure import calls_in, enclosing, first_line, last_line

SOURCE = """\
import torch


@torch.no_grad()
def features(x):
    with torch.enable_grad(), open("f") as f:
        if x is not None:
            return net(
                x,
            )
    return x
"""


def test_the_scopes_around_a_line(tmp_path: Path) -> None:
    """The innermost first; a decorated function begins at its decorator."""
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    around = [node for node in enclosing(str(file), 9) if isinstance(node, ast.stmt)]

    assert [type(node).__name__ for node in around] == ["Return", "If", "With", "FunctionDef"]
    assert (first_line(around[-1]), last_line(around[-1])) == (4, 11)
    assert list(calls_in(around[0])) == ["net"]


def test_what_is_no_source_has_no_scopes(tmp_path: Path) -> None:
    """A file that is not there, and one that is no Python."""
    broken = tmp_path / "broken.py"
    broken.write_text("def (:\n")

    assert enclosing(str(tmp_path / "none.py"), 1) == []
    assert enclosing(str(broken), 1) == []
