"""Plans that are made in the last step, in a copy of a run that waits, beside the same plans made from the start."""

from pathlib import Path

import pytest
from runs import python

_PROGRAM = """
import torch
from torch import nn

layers = [nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 32)) for _ in range(4)]
net = nn.Sequential(*layers, nn.Linear(32, 7))
optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
for step in range(5):
    size = {size}
    loss = nn.functional.cross_entropy(net(torch.randn(size, 32)), torch.zeros(size, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_COMPARES = """
import sys
from msgspec.structs import asdict
from pathlib import Path
from gradinspect.analyses.planning.changes import (
    Autocast, Checkpoint, Fused, HalfSaves, Plan, ReleaseGradients, StepInBackward, WithoutForeach
)
from gradinspect.analyses.planning.changes import NamedPlace
from gradinspect.cli.running.planned_runs import PlannedRuns
from gradinspect.request import Request
from gradinspect.source import Script

request = Request(source=Script(path=Path(sys.argv[1])), label="net.py", fake=True, answers_reads=True)
runs = PlannedRuns(request, int(sys.argv[2]))
runs.plain()
of = {"root": 0, "paths": ("0", "1", "2"), "class_name": "Sequential", "num_alike": 4}
release = ReleaseGradients(line="net.py:14", code="optimizer.zero_grad()")
optimizers = (NamedPlace(name="optimizer"),)
stepping, single, fused = (kind(optimizers=optimizers) for kind in (StepInBackward, WithoutForeach, Fused))
for changes in (
    (Checkpoint(**of),),
    (release, Checkpoint(**of, kept=("aten.addmm.default",))),
    (HalfSaves(**of),),
    (Autocast(**of),),
    (release,),
    (stepping, Checkpoint(**of)),
    (single,),
    (release, fused),
)[: int(sys.argv[3])]:
    quick, whole = runs.measure(Plan(changes=changes)), runs.measure(Plan(changes=changes), whole=True)
    one, other = asdict(quick), asdict(whole)
    print(one.pop("only_last_step"), other.pop("only_last_step"), quick.failure, quick.peak_bytes > 0)
    if one != other:
        print(one, other)
runs.close()
"""


NUM_PLANS = 8
FEWER_PLANS = 2  # of which one recomputes a part, and one frees gradients as well, too


def compared(folder: Path, size: str, num_plans: int = NUM_PLANS, steps: int = 2) -> list[str]:
    """Measure plans for a program: in its last step, if that can be done, and from the start."""
    (folder / "net.py").write_text(_PROGRAM.replace("{size}", size))
    (folder / "compare.py").write_text(_COMPARES)
    done = python(folder / "compare.py", str(folder / "net.py"), str(steps), str(num_plans), cwd=folder, has_ours=True)

    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("num_plans", [FEWER_PLANS, pytest.param(NUM_PLANS, marks=pytest.mark.slow)])
def test_a_plan_in_the_last_step_needs_what_it_needs_from_the_start(tmp_path: Path, num_plans: int) -> None:
    """Its peak, what is held, its work and its moment are the same."""
    assert compared(tmp_path, "256", num_plans) == ["True False  True"] * num_plans


@pytest.mark.slow
def test_a_plan_in_the_only_step_needs_what_it_needs_from_the_start(tmp_path: Path) -> None:
    """Its optimizers are found, though the collector had frozen them before the program went on."""
    assert compared(tmp_path, "256", steps=1) == ["False False  True"] * NUM_PLANS


@pytest.mark.slow
def test_what_is_frozen_before_the_first_node_counts_in_its_own_step(tmp_path: Path) -> None:
    """That of a step which is not asked for counts nowhere, so that a plan has the same work from the start."""
    assert compared(tmp_path, "256; layers[0].requires_grad_(False)") == ["True False  True"] * NUM_PLANS


@pytest.mark.slow
def test_where_an_earlier_step_needs_more_the_whole_program_is_run(tmp_path: Path) -> None:
    """As with a batch that is larger."""
    assert compared(tmp_path, "900 - 300 * step") == ["False False  True"] * NUM_PLANS


@pytest.mark.slow
def test_where_a_copy_would_share_something_the_whole_program_is_run(tmp_path: Path) -> None:
    """As with an open file, which has one position for all."""
    assert compared(tmp_path, "256; kept = open(__file__)") == ["False False  True"] * NUM_PLANS


def test_what_has_waited_ends_without_its_last_step(tmp_path: Path) -> None:
    """The copies compute it, one for each plan: nobody reads what it would compute."""
    counted = _PROGRAM.replace(
        "    optimizer.zero_grad()\n",
        "    __import__('os').system(f'echo {step} >> steps')\n    optimizer.zero_grad()\n",
    )
    once = _COMPARES.partition("of = {")[0] + "runs.close()\n"
    (tmp_path / "net.py").write_text(counted.replace("{size}", "256"))
    (tmp_path / "compare.py").write_text(once)
    done = python(tmp_path / "compare.py", str(tmp_path / "net.py"), "2", cwd=tmp_path, has_ours=True)

    assert not done.returncode, done.stderr
    assert (tmp_path / "steps").read_text().split() == ["0", "1", "2"]
