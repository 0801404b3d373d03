"""Make the pictures of the README and the docs anew, from the samples.

    python docs/make_pictures.py           writes docs/pictures/*.svg
    python docs/make_pictures.py --check   names those that are stale, and exits with 1 if there are any

They are drawn by graphviz-pure, which is pinned: another Graphviz places the same boxes differently.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
PICTURES = {
    "transformer.svg": ["samples/transformer.py", "--depth", "1"],
    "gradients.svg": ["samples/vanishing.py", "--color-by", "grad", "--depth", "1"],
}
NO_PROGRAMS = "/nonexistent"  # a search path without the system's dot


def make(folder: Path) -> None:
    """Draw all of them."""
    for name, words in PICTURES.items():
        command = [sys.executable, "-m", "gradinspect", "export", *words, "-o", str(folder / name), "--force"]
        subprocess.run(command, cwd=ROOT, check=True, env={"PATH": NO_PROGRAMS}, capture_output=True)


def stale() -> list[str]:
    """Name the pictures that are not as the tool draws them now."""
    with tempfile.TemporaryDirectory() as made:
        make(Path(made))
        return [name for name in PICTURES if _bytes(FOLDER / name) != _bytes(Path(made) / name)]


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        names = stale()
        print("\n".join(f"stale: {name}" for name in names) or "All pictures are up to date.")
        sys.exit(bool(names))
    FOLDER.mkdir(exist_ok=True)
    make(FOLDER)
