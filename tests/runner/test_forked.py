"""A child of ours runs a program, and leaves what it has inherited to its parent."""

from pathlib import Path

from runs import python

INHERITS = """
import pathlib, tempfile
from gradinspect.runner.forked import run_forked

folders = [tempfile.TemporaryDirectory()]

def run(send):
    folders.append(tempfile.TemporaryDirectory())
    send(folders[1].name.encode())

sent, status = run_forked(run, is_silent=False)
print(status, pathlib.Path(folders[0].name).exists(), pathlib.Path(sent.decode()).exists())
"""


def test_a_child_finalizes_what_it_has_made(tmp_path: Path) -> None:
    """Its temporary folder goes with it, that of its parent stays."""
    (tmp_path / "parent.py").write_text(INHERITS)
    done = python(tmp_path / "parent.py")

    assert (done.stdout, done.stderr) == ("0 True False\n", "")
