"""Lines that keep what another line made, in files written by hand."""

from pathlib import Path

import pytest

from gradinspect.checks.evidence.lines.stored import storing
from gradinspect.graph import Frame
from gradinspect.recording.frames import FrameTable


def found_in(folder: Path, source: str, line: int) -> tuple[str, int, str] | None:
    """Return the variable, the line that keeps it, and its text."""
    file = folder / f"step_{len(list(folder.iterdir()))}.py"  # files are read once
    file.write_text(source)
    frames = FrameTable()
    frames.number_at(compile(source, str(file), "exec"), line)
    found = storing(frames, folder)(Frame(file=file.name, line=line, function="f"))
    return None if found is None else (found.name, found.frame.line, found.frame.code)


@pytest.mark.parametrize(
    "kept", ["state['h'] = h", "self.h = h", "memory.items.append(h)", "cache.setdefault('h', h)", "queue.put(h)"]
)
def test_the_line_that_keeps_a_variable(tmp_path: Path, kept: str) -> None:
    """Under an attribute or a key, or in a list, which live longer than the function."""
    source = f"def f(x):\n    out, h = model(x)\n    {kept}\n    return out\n"

    assert found_in(tmp_path, source, 2) == ("h", 3, kept)


@pytest.mark.parametrize("other", ["g = h", "self.h = out.mean()", "print(h)", "self.h = g(h)"])
def test_what_is_not_kept_as_it_is(tmp_path: Path, other: str) -> None:
    """Another variable, another value, and what a function makes of it."""
    assert found_in(tmp_path, f"def f(x):\n    out, h = model(x)\n    {other}\n    return out\n", 2) is None


def test_a_line_of_another_file_or_that_assigns_nothing_keeps_nothing(tmp_path: Path) -> None:
    """Nor does what stands before it."""
    assert found_in(tmp_path, "def f(x):\n    self.h = h\n    h = model(x)\n", 3) is None
    assert found_in(tmp_path, "def f(x):\n    return model(x)\n", 2) is None
    assert storing(FrameTable(), tmp_path)(Frame(file="none.py", line=1)) is None
