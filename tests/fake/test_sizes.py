"""Sizes and counts that depend on values: `fit` takes the largest, and says so, where the program has no second run.

A program from stdin has none. NOTE [Runs for values] in `values_first`.
"""

import json
from pathlib import Path

import pytest
from runs import gradinspect

SELECTING = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    x, keep, grid = torch.ones(128, 16), torch.ones(128, dtype=torch.bool), torch.arange(128.0)
    out = model(x[keep])
    (chosen,) = torch.where(keep)
    loss = out[chosen].square().mean() + model(torch.masked_select(x, keep[:, None]).view(128, 16)).mean()
    unique, inverse, counts = torch.unique(grid, return_inverse=True, return_counts=True)
    loss = loss + (unique[:, None] * out).mean() + out[inverse].mean()
    loss = loss + model(torch.unique(torch.randn(128, 16), dim=0)).mean()
    solved = torch.linalg.lstsq(torch.randn(16, 4), torch.randn(16, 3), driver="gelsd")
    rows = torch.zeros(keep.sum().item(), 4)
    loss = loss + (rows + out).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del solved
"""
FINITE = """
import torch
from torch import nn


class Guarded(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        if torch.isnan(y).any() or not torch.isfinite(y).all():
            raise ValueError
        return y


model = Guarded(8, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=True)
right = 0
for _ in range(2):
    y = model(torch.randn(16, 8))
    loss = y.square().mean()
    assert not (torch.isinf(loss) | (loss != loss))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if torch.isfinite(norm):
        optimizer.step()
    optimizer.zero_grad()
    right += y.argmax(1).eq(torch.zeros(16)).sum().item()
assert right == 32, right
"""


def test_where_all_is_selected_the_bound_is_what_is_measured(tmp_path: Path) -> None:
    """To the byte: masks, positions, unique values and rows, least squares, and a size that is a count."""
    predicted, measured = (
        json.loads(gradinspect("fit", "-", *options, "--format", "json", cwd=tmp_path, typed=SELECTING).stdout)
        for options in ((), ("--real",))
    )

    assert predicted["peak_bytes"] == measured["peak_bytes"]
    assert [note.partition(":")[0] for note in predicted["notes"] if "largest" in note] == [
        "Sizes and counts that depend on values were taken to be the largest possible"
    ]


def test_numbers_are_taken_to_be_finite(tmp_path: Path) -> None:
    """Also where a module asks; what is counted is as many as there are."""
    (tmp_path / "train.py").write_text(FINITE)
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Values were taken to be finite: train.py:9, train.py:20, train.py:23." in done.stdout
    assert "largest possible: train.py:26." in " ".join(done.stdout.split())


@pytest.mark.parametrize("line", ["bad |= x > 0", "bad.fill_(True)", "bad[0] = True"])
def test_nothing_is_assumed_of_what_is_written_to(line: str, tmp_path: Path) -> None:
    """Its values may be others now."""
    program = (
        f"import torch\nx = torch.randn(9, requires_grad=True)\nbad = torch.isnan(x)\n{line}\n"
        "if bad.any():\n    x = x * 2\nx.sum().backward()\n"
    )
    done = gradinspect("fit", "-", cwd=tmp_path, typed=program)

    assert done.returncode == 2
    assert "'if bad.any():' (<stdin>:5) reads values" in done.stderr


def test_a_hint_is_what_is_answered(tmp_path: Path) -> None:
    """Whatever could be assumed."""
    (tmp_path / "train.py").write_text(FINITE.replace("assert right == 32, right", "assert right == 0").replace(
        "raise ValueError", "pass").replace("assert not (", "print("))  # fmt: skip
    done = gradinspect("fit", "train.py", "--hint", "0", "--continue", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Values that are read were taken to be 0: " in done.stdout


@pytest.mark.parametrize(("change", "status"), [("", 0), ("lengths += 1", 2), ("lengths[x[:, 0, 0].argmax()] += 1", 2)])
def test_numbers_that_are_written_down_are_known_until_others_are_written(
    change: str, status: int, tmp_path: Path
) -> None:
    """As the lengths of sequences; what depends on values that are not there makes them unknown."""
    program = (
        "import torch\nx = torch.randn(3, 9, 4, requires_grad=True)\nlengths = torch.tensor([3, 5, 7])\n"
        f"{change}\nlongest = lengths.max().item()\n(x[:, :longest] * 2).sum().backward()\n"
        "assert longest == 7\n"
    )
    done = gradinspect("fit", "-", "--continue", cwd=tmp_path, typed=program)

    assert done.returncode == status, done.stderr
    assert ("reads values" in done.stderr) == bool(status)


def test_a_sparse_tensor_that_cannot_be_fake_is_named(tmp_path: Path) -> None:
    """One that is made of its rows; instead of an error of torch's own."""
    program = (
        "import torch\nrows, columns = torch.tensor([0, 3, 3]), torch.tensor([0, 1, 2])\n"
        "graph = torch.sparse_csr_tensor(rows, columns, torch.rand(3), (2, 5))\n"
    )
    done = gradinspect("fit", "-", cwd=tmp_path, typed=program)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "needs a sparse tensor that cannot be fake. Run without --fake; fit has --real."
    )
    assert "Traceback" not in done.stderr


def test_a_sparse_tensor_that_learns_is_followed(tmp_path: Path) -> None:
    """Its gradient has as many elements as itself, also if two of them meet."""
    program = (
        "import torch\nvalues = torch.rand(9, requires_grad=True)\nplaces = torch.arange(9).expand(2, 9)\n"
        "graph = torch.sparse_coo_tensor(places, values, (9, 9))\n"
        "torch.sparse.mm(graph, torch.sparse.mm(graph, torch.ones(9, 2))).sum().backward()\n"
        "assert values.grad.shape == (9,)\nprint('done')\n"
    )
    done = gradinspect("fit", "-", "--continue", cwd=tmp_path, typed=program)

    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout


def test_a_program_that_fails_with_the_largest_size_is_told_which_line(tmp_path: Path) -> None:
    """One element of each row is selected, and no traceback of torch's own is printed."""
    program = (
        "import torch\n"
        "weight = torch.ones(4, 3, requires_grad=True)\n"
        "chosen = weight[torch.eye(4, 3) == 1]\n"
        "(chosen * weight).sum().backward()\n"
    )
    done = gradinspect("fit", "-", cwd=tmp_path, typed=program)

    assert done.returncode == 2
    assert done.stderr == (
        "gradinspect: '(chosen * weight).sum().backward()' (<stdin>:4) fails with the largest size that "
        "values could give a tensor: RuntimeError. Run with --real.\n"
    )
