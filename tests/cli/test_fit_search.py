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


SHARDED = """
import sys
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

batch = 4
per_host = int(sys.argv[1])
distributed.init_process_group("nccl")
mesh = init_device_mesh("cpu", (distributed.get_world_size() // per_host * per_host,))
net = nn.Sequential(*(nn.Linear(128, 128) for _ in range(4)))
for layer in net:
    fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(2):
    net(torch.randn(batch, 128)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
@pytest.mark.parametrize("per_host", [1, 4])
def test_the_smallest_number_of_ranks_fits_and_one_fewer_does_not(per_host: int, tmp_path: Path) -> None:
    """As a rank of so many alone needs; where only whole hosts can be run, one host fewer does not fit."""
    (tmp_path / "train.py").write_text(SHARDED)
    limit = ("--limit", "420KiB", "--format", "json")
    figures = searched(tmp_path, "train.py", "--search", "world-size", *limit, "--", str(per_host))
    peaks = {row["size"]: row["peak_bytes"] for row in figures["rows"] if not row["failure"]}
    smallest = figures["smallest"]

    assert peaks[smallest] <= 420 * 1024 < peaks[smallest - per_host]
    alone = gradinspect(
        "fit", "train.py", "--world-size", str(smallest), "--format", "json", "--", str(per_host), cwd=tmp_path
    )
    assert json.loads(alone.stdout)["peak_bytes"] == peaks[smallest]


@pytest.mark.slow
def test_more_ranks_change_nothing_where_nothing_is_shared(tmp_path: Path) -> None:
    """Which is said, after few runs."""
    (tmp_path / "net.py").write_text(NET)
    done = gradinspect("fit", "net.py", "--search", "world-size", "--limit", "1KiB", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stdout.startswith("No world-size up to 8 fits: limit 1.0 KiB, net.py\n")
    assert "The program sends nothing to other ranks" in done.stdout


TWO_SIZES = """
import torch
batch = 4
width = 4
net = torch.nn.Linear(width, width)
net(torch.randn(batch, width)).square().sum().backward()
"""


@pytest.mark.slow
def test_two_at_once_are_a_table_and_a_picture(tmp_path: Path) -> None:
    """Each row to the unit, in at most 80 columns; the JSON has all that was measured."""
    (tmp_path / "train.py").write_text(TWO_SIZES)
    words = ("train.py", "--search", "batch,width", "--steps", "1", "--limit", "700")
    done = gradinspect("fit", *words, "-o", "pairs.svg", cwd=tmp_path)
    table = done.stdout.partition("\n\n")[2]  # what is said of the figures comes before it
    found = [line.split() for line in table.splitlines()[1:] if line.startswith("    ")]

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The largest width that fits, by batch: limit 700 B, train.py\n")
    assert [int(row[0]) for row in found] == [2**n for n in range(len(found))]
    assert found[-1][1] == "none"
    for _, largest, peak, unit, beyond, *_ in found[:-1]:
        assert unit == "B"
        assert int(peak) <= 700
        assert int(beyond.rstrip(":")) == int(largest) + 1
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert (tmp_path / "pairs.svg").read_text().startswith("<svg ")
    figures = json.loads(gradinspect("fit", *words, "--format", "json", cwd=tmp_path).stdout)
    assert [str(row["largest"]) for row in figures["rows"]][:-1] == [row[1] for row in found[:-1]]


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
         "Write their picture: -o sizes.svg, or one size: run it without --search.\n"),
        (("net.py", "--search", "BATCH,BATCH"),
         "'--search BATCH,BATCH' is not one name, or two. Write --search batch,seq.\n"),
        (("net.py", "--search", "world-size", "--world-size", "8"),
         "'--search world-size' and '--world-size 8' both say how many ranks there are. Remove one.\n"),
        (("net.py", "--search", "world_size"),
         "'net.py' does not say what 'world_size' is. Did you mean --search world-size?\n"),
    ],
    ids=["misspelt", "nowhere", "not searched", "real", "a file", "the same twice", "ranks twice", "ranks misspelt"],
)  # fmt: skip
def test_what_cannot_be_searched_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    """Exit 2, and no traceback."""
    (tmp_path / "net.py").write_text(NET)
    done = gradinspect("fit", *words, cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: {sentence}"


OPTIONS = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--unused", type=int, default=16)
arguments = parser.parse_args()
net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters())
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(arguments.batch_size, 64)).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_name_that_changes_nothing_has_no_largest_size(tmp_path: Path) -> None:
    """An option that is given as well wins over its default: to call the last size tried the largest would be false."""
    (tmp_path / "train.py").write_text(OPTIONS)
    limit = ("--limit", "1MiB")

    given = gradinspect("fit", "train.py", "--search", "batch_size", *limit, "--", "--batch-size=8", cwd=tmp_path)
    assert (given.returncode, given.stdout) == (2, "")
    assert given.stderr == (
        "gradinspect: '--batch-size=8' in the script's arguments gives 'batch_size' its number, whatever the script"
        " has. Write --batch-size {batch_size} there.\n"
    )
    assert searched(tmp_path, "train.py", "--search", "n", *limit, "--format", "json", "--", "--batch-size", "{n}")

    unused = gradinspect("fit", "train.py", "--search", "unused", *limit, cwd=tmp_path)
    assert (unused.returncode, unused.stdout) == (2, "")
    assert unused.stderr.splitlines()[-1].startswith(
        "gradinspect: 'unused' changes nothing: from 1 to 1048576 the peak"
    )

    table = gradinspect("fit", "train.py", "--search", "unused", cwd=tmp_path)
    assert table.returncode == 0
    assert "The peak is the same with each unused." in " ".join(table.stdout.split())
