"""`--world-size`: one rank without the others needs what it needs beside them, and says what it would send."""

import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ranked import RankRun, on_ranks
from runs import gradinspect
from turns import one_in

TESTS = Path(__file__).parent.parent
STEPS = str(TESTS / "rank_programs" / "sharded_steps.py")
JOBS = (("ddp", 2), ("unused", 2), ("sharded", 2), ("parallel", 2), ("kept", 4))
ASKS = """
import os
import torch
from torch import distributed
distributed.init_process_group("gloo", init_method="tcp://10.0.0.1:99", rank=0, world_size=3)
box = [None, None]
distributed.all_gather_object(box, os.environ["LOCAL_RANK"] + os.environ["RANK"])
distributed.barrier(group=distributed.new_group([8, 9], backend="gloo"))
print(distributed.get_rank(), distributed.get_world_size(), box)
distributed.{call}
torch.ones(3, requires_grad=True).sum().backward()
"""

PIPELINE = """
import torch
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
torch.distributed.init_process_group("gloo")
stage = PipelineStage(torch.nn.Linear(8, 8), 1, 4, torch.device("cpu"))
ScheduleGPipe(stage, n_microbatches=2).step()
"""


def beside_others(kind: str, size: int) -> list[dict[str, Any]]:
    """Measure each rank of a job by the allocator's events."""
    name = f"{{rank}}.{kind}.{size}.json"
    words = ("fit", STEPS, "--real", "--format", "json", "-o", name, "--force", "--", kind, "shared_memory")
    (ended,) = on_ranks([RankRun(words, size, _folder(), {"KINETO_LOG_LEVEL": "99"})])
    assert [end.code for end in ended] == [0] * size, ended
    return [_read(f"{rank}.{kind}.{size}.json") for rank in range(size)]


@cache
def _folder() -> str:
    return tempfile.mkdtemp()


def _read(name: str) -> dict[str, Any]:
    memory: dict[str, Any] = json.loads((Path(_folder()) / name).read_text())["memory"]
    return memory


def alone(kind: str, size: int, rank: int, backend: str = "gloo") -> dict[str, Any]:
    """Predict one rank without the others."""
    words = ("--world-size", str(size), "--rank", str(rank), "--format", "json", "--", kind, backend)
    done = gradinspect("fit", STEPS, *words)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def figures_of(memory: dict[str, Any]) -> list[Sequence[int]]:
    """Return the bytes at the peak, of each step at its peak, when its backward began, and at its end."""
    steps = [(step["peak_bytes"], step["backward_bytes"], step["end_bytes"]) for step in memory["steps"]]
    return [(memory["peak_bytes"],), *steps]


@pytest.mark.slow
@pytest.mark.parametrize("job", one_in(2, JOBS))
def test_a_rank_alone_needs_what_it_needs_beside_others(job: tuple[str, int]) -> None:
    """To the byte after forward, at the peak, and after the step."""
    kind, size = job
    rank = 0 if kind == "ddp" else size - 1

    assert figures_of(alone(kind, size, rank)) == figures_of(beside_others(kind, size)[rank])


@pytest.mark.slow
def test_its_collectives_are_listed_in_order_with_their_modules() -> None:
    """Those that gather a module's weights in forward, then those of backward, with the bytes of the whole tensor."""
    figures = alone("sharded", 64, 63)
    second = [one for one in figures["collectives"] if one["step"] == 2]
    gathered = [(one["module"], one["num_bytes"]) for one in second if one["phase"] == "forward"]
    padded = 4 * 64 * (2 * 24 + 2 + 1 * 96 + 1)  # each part as large as the largest

    assert gathered == [(str(n), padded) for n in range(3)]
    assert {one["op"] for one in second if one["phase"] == "backward"} == {
        "all_gather_into_tensor",
        "reduce_scatter_tensor",
    }
    assert {one["group_size"] for one in second} == {64}
    assert (figures["rank"], figures["world_size"]) == (63, 64)
    assert "not a measurement" in figures["notes"][0]


def test_the_page_says_which_rank_what_it_sends_and_both_shapes() -> None:
    """In at most 80 columns."""
    done = gradinspect(
        "fit", STEPS, "--world-size", "4", "--by", "storage", "--where", "kind=gradient", "--", "parallel", "nccl"
    )

    assert done.stdout.splitlines()[0].endswith(", rank 0 of 4")
    assert "5 collectives of step 2, in order: 3.8 KiB\n  all_reduce  forward  model.0 " in done.stdout
    assert "0-2.up.weight [96, 24] local [24, 24] (gradient) ×3" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.parametrize("words", [("trace",), ("memory",), ("plan", "--fit", "1GiB")])
def test_other_verbs_run_one_rank_too(words: tuple[str, ...]) -> None:
    """On fake tensors, as if --fake were given."""
    done = gradinspect(words[0], STEPS, *words[1:], "--world-size", "8", "--", "sharded", "nccl")

    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "rank", "said"),
    [
        ("send_object_list([1], dst=0)", 1, ""),
        ("broadcast_object_list([None], src=8)", 0, ""),
        ("broadcast_object_list([None], src=0)", 1,
         "'distributed.broadcast_object_list([None], src=0)' (train.py:10) waits for objects of rank 0, which "
         "--world-size does not run. Run all ranks: torchrun -m gradinspect."),
        ("recv_object_list([None], src=2)", 1,
         "'distributed.recv_object_list([None], src=2)' (train.py:10) waits for objects of rank 2, which --world-size "
         "does not run. Run all ranks: torchrun -m gradinspect."),
        ("all_reduce(torch.ones(3).to_sparse())", 1,
         "'distributed.all_reduce(torch.ones(3).to_sparse())' (train.py:10) needs a collective that only a real "
         "process group can answer: c10d.allreduce_.default. Run all ranks: torchrun -m gradinspect."),
    ],
)  # fmt: skip
def test_what_other_ranks_would_send_is_shaped_or_named(call: str, rank: int, said: str, tmp_path: Path) -> None:
    """The program sees the rank it was given; what needs values of another rank is one sentence with its line."""
    (tmp_path / "train.py").write_text(ASKS.replace("{call}", call))
    done = gradinspect("fit", "train.py", "--world-size", "16", "--rank", str(8 + rank), cwd=tmp_path)
    seen = f"{rank}{8 + rank}"

    assert done.stdout.startswith(f"{8 + rank} 16 ['{seen}', '{seen}']\n")
    assert (done.returncode, done.stderr.replace("gradinspect: ", "").strip()) == (2 if said else 0, said)


def test_a_pipeline_stage_that_waits_for_others_is_one_sentence(tmp_path: Path) -> None:
    """Torch's schedules shake hands, and stages send shapes: no advice about values of the program."""
    (tmp_path / "train.py").write_text(PIPELINE)
    done = gradinspect("fit", "train.py", "--world-size", "4", "--rank", "1", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "gradinspect: 'ScheduleGPipe(stage, n_microbatches=2).step()' (train.py:6) waits for what other stages of the "
        "pipeline send, which --world-size does not run. Run all ranks: torchrun -m gradinspect.\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rank", "1"), "'--rank 1' needs --world-size. Give the number of ranks: --world-size 8."),
        (("--rank", "4", "--world-size", "4"), "'--rank 4' is not a rank of 4. They are 0 to 3."),
        (("--real", "--world-size", "4"),
         "'--world-size' is for ranks that are not there, which cannot send values. "
         "Remove --real or --try, or run all ranks: torchrun -m gradinspect."),
    ],
)  # fmt: skip
def test_ranks_that_cannot_be_run_are_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    """Exit 2."""
    done = gradinspect("fit", STEPS, *words, "--", "ddp", "gloo")

    assert (done.returncode, done.stderr) == (2, f"gradinspect: {sentence}\n")


@pytest.mark.slow
def test_a_rank_of_a_real_job_stays_what_it_is() -> None:
    """Under a launcher the option is refused."""
    done = gradinspect("fit", STEPS, "--world-size", "4", "--", "ddp", "gloo", RANK="0", WORLD_SIZE="2")

    assert done.returncode == 2
    assert "'--world-size 4' is for ranks that are not there, and this is one of 2 that are." in done.stderr
