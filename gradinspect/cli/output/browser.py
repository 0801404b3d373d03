"""Open a page in the user's browser."""

import os
import sys
import tempfile
import webbrowser
from pathlib import Path

from gradinspect.cli.output.printing import print_message
from gradinspect.storage import remove_old_folders

PREFIX = "gradinspect-page-"
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def temporary_page(label: str) -> Path:
    """Name a file for a page in a new folder that only this user can read; remove folders from earlier days."""
    remove_old_folders(Path(tempfile.gettempdir()), PREFIX, ".html")
    stem = "".join(char if char.isalnum() or char in "-_" else "-" for char in Path(label).stem) or "graph"
    return Path(tempfile.mkdtemp(prefix=PREFIX)) / f"{stem[:60]}.html"


def open_page(path: Path) -> None:
    """Open a page in a graphical browser, or say that there is none."""
    has_screen = sys.platform in {"darwin", "win32"} or any(os.environ.get(name) for name in SCREENS)
    if not (has_screen and webbrowser.open(path.as_uri())):
        print_message("No browser was found. Open the file in a browser on any machine.")
