"""Running the command line as a user does."""

import os
import subprocess
import sys
from pathlib import Path


def gradinspect(
    *arguments: str | Path, cwd: Path | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own, at 80 columns, in a pipe."""
    environment = {**os.environ, "COLUMNS": "80", **variables}
    command = [sys.executable, "-m", "gradinspect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd, env=environment)
