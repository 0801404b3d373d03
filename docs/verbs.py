"""Write docs/verbs.md, the reference of the command line: `python docs/verbs.py`."""

import os
from pathlib import Path

os.environ["COLUMNS"] = "80"

from typer.testing import CliRunner

from gradinspect.cli.program import app
from gradinspect.cli.verbs import VERBS

FILE = Path(__file__).with_suffix(".md")
HEAD = """\
# Verbs

What `gradinspect VERB --help-all` prints. SOURCE is a script, a notebook, a folder, `-m MODULE`, an expression such as
`'model.py:Net()'`, or a capture file. Written by `python docs/verbs.py`.
"""


def verbs_page() -> str:
    """Return what docs/verbs.md should say."""
    return HEAD + "".join(f"\n## {name}\n\n```text\n{_help(name)}\n```\n" for name in sorted(VERBS))


def _help(verb: str) -> str:
    return CliRunner().invoke(app, [verb, "--help-all"], env={"COLUMNS": "80"}).stdout.strip()


if __name__ == "__main__":
    FILE.write_text(verbs_page(), encoding="utf-8")
    print(f"Wrote {FILE}")
