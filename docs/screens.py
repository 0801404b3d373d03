"""Write the screens in the documents anew, where what is printed has changed: `python docs/screens.py`.

A screen is a block that begins with `$ gradinspect explain ...`, or with a command on a program of `samples/` or
`tests/`. Of one that ends in `2>/dev/null`, stderr has the error that the program fails with, and is not shown.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "samples" / "README.md"]
SCREEN = re.compile(
    r"^\$ (gradinspect (?:explain|(?:[^\n]* )?(?:samples|tests)/)[^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def printed(command: str) -> str:
    """Run a command as a reader does, on a terminal of 80 columns."""
    typed = command.replace("gradinspect", f"{sys.executable} -m gradinspect", 1)
    done = subprocess.run(
        ["bash", "-c", typed], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"},  # kernels have scratch memory for each thread
    )  # fmt: skip
    if not re.fullmatch(r"(?:(?:first|tried) .*\n|\n)*", done.stderr):  # of plan, while it goes on
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def write_screens() -> None:
    """Replace what is shown in each document."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        written = SCREEN.sub(lambda found: f"$ {found[1]}\n{printed(found[1]).rstrip()}\n```", text)
        if written != text:
            document.write_text(written, encoding="utf-8")
            print(f"Wrote {document}", flush=True)


if __name__ == "__main__":
    write_screens()
