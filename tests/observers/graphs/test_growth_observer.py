"""History that is kept across iterations: how much, by whom, and the line that stored it."""

import json
from pathlib import Path
from typing import Any

import pytest
from growth_programs import CLEAN, GROWING, HEAD
from runs import gradinspect


def watched(program: str, folder: Path, *options: str) -> dict[str, Any]:
    """Run a program, and return the figures."""
    (folder / "loop.py").write_text(HEAD + program)
    done = gradinspect("memory", "loop.py", "--iterations", "5", "--format", "json", *options, cwd=folder)
    assert done.returncode == 0
    assert done.stderr == "" or "create_graph=True will create a reference cycle" in done.stderr  # torch's own words
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


@pytest.mark.slow
@pytest.mark.parametrize(("program", "held_by", "name", "line"), GROWING.values(), ids=GROWING)
def test_each_holder_is_named(program: str, held_by: str, name: str, line: str | None, tmp_path: Path) -> None:
    """With the line that stored it, where one did."""
    figures = watched(program, tmp_path)
    holders = {(holder["held_by"], holder["name"]): holder for holder in figures["holders"]}
    old = [iteration["old_nodes"] for iteration in figures["iterations"]]

    assert figures["grows"]
    assert old[0] == 0
    assert old == sorted(old)
    assert (held_by, name) in holders
    if line is not None:
        assert any(stored.endswith(f"  {line}") for stored in holders[held_by, name]["stored_at"])


@pytest.mark.parametrize("program", CLEAN.values(), ids=CLEAN)
def test_a_clean_loop_does_not_grow(program: str, tmp_path: Path) -> None:
    """Such a program keeps no history."""
    assert not watched(program, tmp_path)["grows"]


@pytest.mark.parametrize("program", [CLEAN["two losses"], CLEAN["adversary"]], ids=["two losses", "adversary"])
def test_a_graph_that_no_call_went_through_is_no_earlier_one(program: str, tmp_path: Path) -> None:
    """What was computed before another loss's backward began is of the call that goes through it first."""
    figures = watched(program, tmp_path)

    assert not any(iteration["old_nodes"] for iteration in figures["iterations"])
    assert not figures["holders"]


def test_a_part_that_two_losses_share_is_an_earlier_one(tmp_path: Path) -> None:
    """The second call goes through what the first went through."""
    program = (
        "for _ in range(3):\n    shared = model(x).tanh()\n    second = shared.exp().sum()\n"
        "    shared.sum().backward(retain_graph=True)\n    second.backward()\n    del second, shared\n"
    )
    figures = watched(program, tmp_path, "--iterations", "2")

    assert [iteration["old_nodes"] for iteration in figures["iterations"]] == [0, 3]
    assert figures["holders"][0]["held_by"] == "graph"


def test_watching_changes_nothing(tmp_path: Path) -> None:
    """The script gets the same result, and the graph is freed when the script releases it."""
    program = GROWING["hidden state"][0] + (
        "import gc\ndel h\nmodel.zero_grad()\ncell.zero_grad()\ngc.collect()\n"
        "tensors = [item for item in gc.get_objects() if issubclass(type(item), torch.Tensor)]\n"
        "print('left', sum(1 for item in tensors if item.grad_fn is not None))\n"
    )
    (tmp_path / "loop.py").write_text(HEAD + program)
    done = gradinspect("memory", "loop.py", "--iterations", "5", "--continue", cwd=tmp_path)

    assert done.stderr == ""
    assert done.stdout.startswith("left 0\n5 backward calls of loop.py\nThe graph grows by")


@pytest.mark.parametrize(
    "step",
    [
        "w = torch.eye(3).to_sparse().requires_grad_()\n    loss = torch.sparse.mm(w, torch.ones(3, 3)).sum()",
        "torch.func.hessian(lambda v: (v**3).sum())(torch.ones(3))\n    loss = (w * w).sum()",
    ],
    ids=["sparse", "torch.func"],
)
def test_memory_inside_a_tensor_is_counted(step: str, tmp_path: Path) -> None:
    """A sparse tensor, and one that torch.func wraps, have no storage of their own to ask for."""
    program = f"w = torch.ones(3, requires_grad=True)\nfor _ in range(5):\n    {step}\n    loss.backward()\n"

    assert not watched(program, tmp_path)["grows"]


@pytest.mark.slow
def test_a_deep_graph_is_let_go_without_overflow(tmp_path: Path) -> None:
    """Twenty thousand nodes more each time, walked each time."""
    program = (
        "h = torch.ones(2, requires_grad=True)\nfor _ in range(3):\n    for _ in range(20000):\n        h = h * 1.0\n"
        "    h.sum().backward(retain_graph=True)\ndel h\nprint('alive')\n"
    )
    (tmp_path / "loop.py").write_text(HEAD + program)
    done = gradinspect("memory", "loop.py", "--iterations", "3", "--continue", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("alive\n3 backward calls of loop.py\nThe graph grows by 20,00")


def test_what_cannot_be_watched_is_one_sentence(tmp_path: Path) -> None:
    """A capture file, and a script without backward."""
    (tmp_path / "still.py").write_text("import torch\ny = torch.ones(2, requires_grad=True) * 2\n")
    assert gradinspect("export", "still.py", "-o", "still.json", cwd=tmp_path).returncode == 0
    file = gradinspect("memory", "still.json", "--iterations", "2", cwd=tmp_path)
    script = gradinspect("memory", "still.py", "--iterations", "2", cwd=tmp_path)

    assert (file.returncode, script.returncode) == (2, 2)
    assert "'still.json' is a capture of one moment: it can't show several iterations." in file.stderr
    assert "'still.py' never calls backward in this process" in script.stderr
