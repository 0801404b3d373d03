"""Variables that are assigned anew before anything reads them, in files written by hand."""

from pathlib import Path

import pytest

from gradinspect.checks.evidence.lines.replaced import replaced_unread
from gradinspect.recording.frames import FrameTable


def found_in(folder: Path, source: str, line: int, calling: int | None = None) -> tuple[str, int, int] | None:
    """Return variable and lines, for a call on a line of a function that another line may have called."""
    file = folder / f"step_{len(list(folder.iterdir()))}.py"  # files are read once
    file.write_text(source)
    code = compile(source, str(file), "exec")
    frames = FrameTable()
    caller = None if calling is None else frames.number_at(code, calling)
    number = frames._intern(code, line, caller)  # as a running program would
    found = replaced_unread(frames, number)
    if found is None:
        return None
    (assigned,), (replaced,) = ([line for _, line in frames.chain(one)][:1] for one in (found.assigned, found.replaced))
    return found.name, assigned, replaced


REPLACED = """\
def step(model, x, y):
    loss = box(
        model(x), y)
    if y is not None:
        loss = label(model(x), y)
    return loss
"""
IN_A_LOOP = """\
def total(heads, h):
    loss = 0
    for head in heads:
        out = head(h)
        loss = compare(out)
    return loss
"""
IN_A_HELPER = """\
def box(out):
    return compare(out)

def step(out):
    total = box(out)
    total = label(out)
    return total
"""


def test_a_variable_that_is_assigned_anew(tmp_path: Path) -> None:
    """In its function, also where a decision does it; in the next round of a loop; or where a helper returns to."""
    assert found_in(tmp_path, REPLACED, 3) == ("loss", 2, 5)
    assert found_in(tmp_path, IN_A_LOOP, 5) == ("loss", 5, 5)
    assert found_in(tmp_path, IN_A_HELPER, 2, 5) == ("total", 5, 6)


@pytest.mark.parametrize(
    "body",
    [
        "loss = box(x)\n    print(loss)\n    loss = label(x)",
        "loss = box(x)\n    loss = loss + label(x)",
        "loss = box(x)\n    loss += label(x)",
        "loss = box(x)\n    total = label(x)",
        "loss, other = box(x), 0\n    loss = label(x)",
        "self.loss = box(x)\n    self.loss = label(x)",
        "loss = box(x)\n    log = lambda: print(loss)\n    loss = label(x)",
        "loss = box(x)\n    return loss",
    ],
)
def test_what_is_read_or_may_be_read_is_not_replaced(tmp_path: Path, body: str) -> None:
    """By the next assignment itself, by an inner function, or as an attribute by another method."""
    assert found_in(tmp_path, f"def step(self, x):\n    {body}\n", 2) is None


@pytest.mark.parametrize(
    "source",
    [
        "if a:\n    loss = box(x)\nelse:\n    loss = label(x)\n",
        "match a:\n    case 1:\n        loss = box(x)\n    case 2:\n        loss = label(x)\n",
        "try:\n    loss = box(x)\nexcept ValueError:\n    loss = label(x)\n",
        "for x in y:\n    loss = box(x)\n    loss.backward()\n",
        "for x in y:\n    loss = box(x)\n    loss.backward()\nloss = label(x)\n",
    ],
)
def test_another_branch_and_a_loop_that_reads_it_replace_nothing(tmp_path: Path, source: str) -> None:
    """Only one of two branches runs, and the next round of a loop replaces what this one has used."""
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "box" in text)

    assert found_in(tmp_path, source, line) is None
