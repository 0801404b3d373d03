"""Loops over epochs whose batches are there once."""

import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from gradinspect.checks.evidence.lines.batches_read_once import ReadOnceLog
from gradinspect.checks.facts.targets import BatchesReadOnce

LOOPS = """\
for epoch in range(2):
    for x in batches:
        look()
"""
IN_A_FUNCTION = """\
def train(given):
    for number, x in enumerate(given):
        look()
for epoch in range(2):
    train(batches)
"""


def found_in(text: str, folder: Path) -> list[BatchesReadOnce]:
    """Run a program that looks where backward would be called."""
    file, log = folder / "train.py", ReadOnceLog(folder)
    file.write_text(text)
    known = {"look": lambda: log.begin(sys._getframe(1)), "loader": DataLoader([*torch.zeros(4)], batch_size=2)}
    exec(compile(text, str(file), "exec"), known)  # noqa: S102  # a program of this test
    return list(log.facts(lambda _number: None))


@pytest.mark.parametrize("made", ["zip([1, 2], [3, 4])", "map(str, [1, 2])", "(x + 1 for x in [1, 2])", "iter(loader)"])
@pytest.mark.parametrize("loops", [LOOPS, IN_A_FUNCTION])
def test_an_iterator_that_was_made_before_the_epochs_is_found(made: str, loops: str, tmp_path: Path) -> None:
    """In the function that goes through it, and in the one that calls that."""
    (found,) = found_in(f"batches = {made}\n{loops}", tmp_path)

    assert (found.name, found.value) == ("batches", made)
    assert found.made is not None
    assert found.made.line == 1


@pytest.mark.parametrize(
    "text",
    [
        f"batches = [1, 2]\n{LOOPS}",
        f"batches = loader\n{LOOPS}",
        "for epoch in range(2):\n    batches = zip([1, 2])\n    for x in batches:\n        look()\n",
        "batches = zip([1, 2])\nfor x in batches:\n    look()\n",
        "batches = zip([1, 2])\nfor epoch in range(2):\n    for x in batches:\n        look()\n        break\n",
        "def endless():\n    while True:\n        yield 1\nbatches = zip(endless())\nit = endless()\nnext(it)\nx = 0\n"
        "for epoch in range(2):\n    for x in [1]:\n        look()\n",
    ],
)
def test_what_can_be_gone_through_again_is_not(text: str, tmp_path: Path) -> None:
    """Or is made anew, or gone through in one round, or left early."""
    assert found_in(text, tmp_path) == []


def test_a_generator_function_may_go_on(tmp_path: Path) -> None:
    """Also within a zip."""
    endless = "def count():\n    n = 0\n    while n < 3:\n        n += 1\n        yield n\nbatches = zip(count())\n"

    assert found_in(endless + LOOPS, tmp_path) == []
