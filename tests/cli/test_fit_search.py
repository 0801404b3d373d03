"""`gradinspect fit --search`: the largest size that fits, of a program that is not changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from runs import gradinspect

NET = """
import sys
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1))

    def forward(self, x):
        return self.layers(x)

if __name__ == "__main__":
    batch_size = int(sys.argv[1]) if sys.argv[1:] else 16
    BATCH = 16
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(3):
        net(torch.randn(batch_size if sys.argv[1:] else BATCH, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

ROUTED = """
import torch
from torch import nn

size = 16
torch.manual_seed(0)
gate, expert = nn.Linear(32, 2), nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 32))
optimizer = torch.optim.AdamW([*gate.parameters(), *expert.parameters()])
for _ in range(2):
    x = torch.randn(size, 32)
    rows = (gate(x).argmax(-1) == 1).nonzero().squeeze(-1)
    loss = expert(x[rows]).square().mean() + gate(x).square().mean(){read}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
RUNNING = "running 'train.py' with values"


def searched(folder: Path, *words: str) -> dict[str, Any]:
    """Search, see a line on each size as it was tried, and return the figures."""
    done = gradinspect("fit", *words, cwd=folder)
    figures: dict[str, Any] = json.loads(done.stdout)
    lines = [line for line in done.stderr.splitlines() if not line.startswith(RUNNING)]
    said = {int(line.split()[1].rstrip(":")) for line in lines}
    assert len(done.stderr.splitlines()) - len(lines) <= 1
    assert said == {row["size"] for row in figures.get("rows", ())}
    return figures


@pytest.mark.slow
def test_the_largest_size_fits_and_the_next_one_does_not(tmp_path: Path) -> None:
    """In inputs, in the script's arguments, and where the script sets a number, to the byte."""
    (tmp_path / "net.py").write_text(NET)
    options = ("--format", "json", "--limit", "150KiB", "--search")
    for words in (("net.py:Net()", "--input", "{batch}x64", *options, "batch"), ("net.py", *options, "n", "--", "{n}")):
        figures = searched(tmp_path, *words)
        peaks = {row["size"]: row["peak_bytes"] for row in figures["rows"]}

        assert peaks[figures["largest"]] <= 150 * 1024 < peaks[figures["largest"] + 1]

    (tmp_path / "train.py").write_text(NET.replace("BATCH = 16", f"BATCH = {figures['largest']}"))
    whole = searched(tmp_path, "train.py", "--format", "json")
    assert whole["peak_bytes"] == peaks[figures["largest"]]
    done = gradinspect("fit", "net.py", "--search", "BATCH", "--limit", "1KiB", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("No BATCH fits: limit 1.0 KiB, net.py\n")


@pytest.mark.slow
@pytest.mark.parametrize("read", ["", "\n    if loss > 100:\n        break"], ids=["sizes", "a decision"])
def test_a_size_needs_what_it_needs_alone_where_values_decide(tmp_path: Path, read: str) -> None:
    """To the byte, with the values of real steps of that size, which is said once."""
    (tmp_path / "train.py").write_text(ROUTED.replace("{read}", read))
    figures = searched(tmp_path, "train.py", "--format", "json", "--limit", "400KiB", "--search", "size")
    peaks = {row["size"]: row["peak_bytes"] for row in figures["rows"]}

    assert peaks[figures["largest"]] <= 400 * 1024 < peaks[figures["largest"] + 1]
    assert figures["notes"][0].startswith(f"With size {figures['largest']}, values read at train.py:")

    (tmp_path / "train.py").write_text(ROUTED.replace("{read}", read).replace("16", str(figures["largest"])))
    for words in ((), ("--real",)):
        alone = gradinspect("fit", "train.py", "--format", "json", *words, cwd=tmp_path)
        assert json.loads(alone.stdout)["peak_bytes"] == peaks[figures["largest"]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("net.py", "--search", "BACH"),
         "'net.py' does not say what 'BACH' is. Did you mean --search BATCH?\n"),
        (("net.py:Net()", "--search", "batch", "--input", "8x64"),
         "'net.py:Net()' does not say what 'batch' is. Write {batch} for its number in --input or in the script's "
         "arguments, or set batch to a number in the script.\n"),
        (("net.py:Net()", "--input", "{batch}x64"),
         "'{batch}' in --input has no number. Search for one: fit --search batch.\n"),
        (("net.py", "--search", "BATCH", "--real"),
         "'--search' runs many sizes on fake tensors, and --real has values. Remove --real.\n"),
        (("net.py", "--search", "BATCH", "-o", "step.html"),
         "'-o step.html' keeps one run, and '--search' makes many. "
         "Remove -o, or write one size: run it without --search.\n"),
    ],
    ids=["misspelt", "nowhere", "not searched", "real", "a file"],
)  # fmt: skip
def test_what_cannot_be_searched_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    """Exit 2, and no traceback."""
    (tmp_path / "net.py").write_text(NET)
    done = gradinspect("fit", *words, cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: {sentence}"
