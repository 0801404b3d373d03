"""The memory of whole steps: predicted on fake tensors, measured on real ones, and as the allocator reports it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from runs import gradinspect
from step_memory_programs import MEASURED, PROGRAMS
from turns import one_in

RUNS = Path(__file__).parent.parent.parent / "step_memory_runs.py"
INSIDE_A_KERNEL = {"LSTM"}  # the peak is, whose gradients are not told apart from its scratch memory before it ends
ALWAYS = ("accumulation", "closure")
Figures: TypeAlias = dict[str, Any]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> dict[str, dict[str, Figures]]:
    """Run what is asked for: on fake tensors, on real ones, and as it is, for the peak that the allocator reports."""
    tests = [test for test in request.session.items if test.path == request.path and isinstance(test, pytest.Function)]
    names = {test.callspec.params.get("name") for test in tests if hasattr(test, "callspec")}
    asked = [name for name in PROGRAMS if name in {*names, *ALWAYS}]
    done = subprocess.run([sys.executable, RUNS, *asked], capture_output=True, text=True, check=True)
    found: dict[str, dict[str, Figures]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(2, list(PROGRAMS)))
def test_the_peak_on_fake_tensors_is_the_allocators(name: str, runs: dict[str, dict[str, Figures]]) -> None:
    """To the byte, and what is alive at the peak adds up to it."""
    predicted = runs["fake"][name]

    assert predicted["peak_bytes"] == runs["allocator"][name]["peak_bytes"]
    assert sum(predicted["by_kind"].values()) == predicted["peak_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(2, MEASURED))
def test_the_peak_on_real_tensors_is_the_allocators(name: str, runs: dict[str, dict[str, Figures]]) -> None:
    """To the byte, scratch of kernels included."""
    assert runs["real"][name]["peak_bytes"] == runs["allocator"][name]["peak_bytes"]
    assert not any("scratch" in item for item in runs["real"][name]["not_counted"])


def test_scratch_of_a_kernel_that_is_too_large_to_be_run_is_named(tmp_path: Path) -> None:
    """Without an amount: it is unknown."""
    large = "layer = torch.nn.Conv2d(512, 512, 3)\nlayer(torch.ones(64, 512, 64, 64)).sum().backward()\n"
    figures = watched(f"import torch\n{large}", tmp_path)

    assert any(note.startswith("Some kernels are too large to be run for their scratch") for note in figures["notes"])
    assert any(item.startswith("scratch memory inside kernels") for item in figures["not_counted"])


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(2, [name for name in MEASURED if name not in INSIDE_A_KERNEL]))
def test_fake_and_real_tensors_tell_the_same(name: str, runs: dict[str, dict[str, Figures]]) -> None:
    """Of what the peak is made, when it was, and what each step needs."""
    predicted, measured = runs["fake"][name], runs["real"][name]

    def peaks(figures: Figures) -> list[tuple[int, int]]:
        return [(step["number"], step["peak_bytes"]) for step in figures["steps"]]

    assert measured["by_kind"] == predicted["by_kind"]
    assert peaks(measured) == peaks(predicted)
    assert (measured["at"]["step"], measured["at"]["phase"]) == (predicted["at"]["step"], predicted["at"]["phase"])


def test_the_moment_and_the_kinds_are_named(tmp_path: Path) -> None:
    """Parameters, gradients and optimizer state belong to the parameter's module, under its name."""
    figures = watched(PROGRAMS["zeroed in place"], tmp_path, "--by", "storage")
    labels = {group["label"]: group["num_bytes"] for group in figures["groups"]}

    assert figures["at"]["phase"] == "backward"
    assert figures["at"]["step"] == 2
    assert figures["at"]["module"] == "second"
    assert watched(PROGRAMS["zeroed in place"], tmp_path, "--by", "module")["groups"][0]["class_name"] == "Linear"
    assert labels["second.weight"] == 40 * 40 * 4
    assert labels["second.weight (gradient)"] == 40 * 40 * 4
    assert labels["second.weight (optimizer state)"] == 2 * 40 * 40 * 4 + 4


@pytest.mark.slow
def test_several_backward_calls_before_one_optimizer_step_are_one_step(runs: dict[str, dict[str, Figures]]) -> None:
    """Accumulated gradients do not make steps."""
    figures = runs["fake"]["accumulation"]

    assert [step["number"] for step in figures["steps"]] == [1, 2]
    assert figures["notes"] == []


@pytest.mark.slow
def test_a_step_may_run_forward_and_backward_itself(runs: dict[str, dict[str, Figures]]) -> None:
    """An optimizer that is given a closure does; each of its steps is one."""
    figures = runs["fake"]["closure"]

    assert [step["number"] for step in figures["steps"]] == [1, 2]
    assert figures["notes"] == []
    assert figures["at"]["phase"] == "backward"


ENDLESS = """
import torch
model = torch.nn.Linear(4, 4)
{made}
for step in range(1000):
    print("step", step, flush=True)
    model(torch.ones(2, 4)).sum().backward()
    {stepped}
"""


@pytest.mark.parametrize(
    ("made", "stepped", "num_notes"),
    [("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "optimizer.step()", 0), ("", "", 1)],
    ids=["optimizer", "none"],
)
def test_the_program_is_stopped_after_its_steps(made: str, stepped: str, num_notes: int, tmp_path: Path) -> None:
    """At the first backward call after them; without an optimizer each backward call is a step, and a note says so."""
    (tmp_path / "train.py").write_text(ENDLESS.format(made=made, stepped=stepped))
    done = gradinspect("fit", "train.py", "--steps", "3", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.count("step 3: peak") == 1
    assert "step 4: peak" not in done.stdout
    assert "\nstep 3\n" in done.stdout
    assert "\nstep 4\n" not in done.stdout
    assert done.stdout.count("No optimizer has stepped") == num_notes


def watched(program: str, folder: Path, *options: str) -> Figures:
    """Ask for the memory of a program's steps."""
    (folder / "train.py").write_text(program)
    done = gradinspect("fit", "train.py", "--format", "json", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    figures: Figures = json.loads(done.stdout)
    return figures


def test_values_that_are_read_after_the_last_step_do_not_matter(tmp_path: Path) -> None:
    """The program would have been stopped before its next backward call."""
    program = PROGRAMS["SGD"] + "total = loss.tolist()\n"

    assert watched(program, tmp_path)["peak_bytes"] == watched(PROGRAMS["SGD"], tmp_path)["peak_bytes"]


@pytest.mark.slow
def test_optimizers_that_step_before_training_are_looked_at_when_it_begins(tmp_path: Path) -> None:
    """What such an optimizer holds is its state, as of one that steps in training; the peak is the same."""
    held = (
        "early = torch.nn.Parameter(torch.ones(100))\nearly.grad = torch.ones(100)\nother = torch.optim.Adam([early])\n"
    )
    program = f"import torch\n{held}{{}}{PROGRAMS['SGD']}".format
    plain, stepped = (watched(program(steps), tmp_path) for steps in ("", "for _ in range(50): other.step()\n"))

    assert stepped["by_kind"]["optimizer_state"] == 2 * 400 + 4  # and the number of steps
    assert stepped["peak_bytes"] == plain["peak_bytes"] + 2 * 400 + 4
