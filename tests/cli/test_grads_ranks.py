"""`gradinspect grads --ranks`: the buckets of DistributedDataParallel, in real processes."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from runs import gradinspect
from turns import one_in

pytestmark = pytest.mark.slow

PROGRAM = """\
import gc, json, os, sys, torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):  # of which the layer that is registered last runs first
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(nn.Linear(300, 300) for _ in range(4)))
        self.late = nn.Linear(300, 300)
        self.head = nn.Linear(300, 3)

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.late(x))))

def parallel():
    torch.manual_seed(0)
    return DistributedDataParallel(Net(), bucket_cap_mb=1, find_unused_parameters="unused" in sys.argv)

rank = int(os.environ["RANK"])
folder = os.environ["FOLDER"]
distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
seen = {}

def noted(names, bucket):  # what torch itself reduces, as another model's communication hook sees it
    seen[bucket.index()] = [names[id(one)] for one in bucket.parameters()]
    return distributed.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda found: found.value()[0] / 2)

for step in range(6):
    if step % 3 == 0:
        model = parallel()
    if step == 0:
        model.register_comm_hook({id(one): name for name, one in model.module.named_parameters()}, noted)
    if step == 3:
        gc.collect()
        with open(f"{folder}/{rank}.json", "w") as file:
            json.dump([seen[index] for index in sorted(seen)], file)
    model(torch.randn(8, 300)).square().mean().backward()
distributed.destroy_process_group()
"""


def found_on_both(folder: Path, *arguments: str) -> tuple[dict[str, Any], list[list[list[str]]]]:
    """Run the program on two ranks; return what rank 0 printed for both, and the buckets that torch reduced on each."""
    (folder / "train.py").write_text(PROGRAM)
    words = ("grads", "train.py", "--ranks", "--backward", "4", "--format", "json", *arguments)

    def run(rank: int) -> "subprocess.CompletedProcess[str]":
        return gradinspect(*words, cwd=folder, is_new=True, RANK=str(rank), WORLD_SIZE="2", FOLDER=str(folder))

    with ThreadPoolExecutor(2) as both:
        done = list(both.map(run, range(2)))

    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    assert done[1].stdout == ""

    return json.loads(done[0].stdout), [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("arguments", one_in(2, [(), ("--", "unused")]))
def test_buckets_are_those_that_torch_reduces(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A communication hook sees the same parameters in the same buckets, in any order in each.

    With find_unused_parameters they stay in reverse order of registration, and the layer that runs first holds one up.
    """
    found, reduced = found_on_both(tmp_path, *arguments)
    (model,) = found["models"]
    named = [sorted(one["name"] for one in bucket["parameters"]) for bucket in model["buckets"]]
    late = [note for note in model["notes"] if note.startswith("late.") and "up bucket" in note]

    assert [[sorted(names) for names in rank] for rank in reduced] == [named, named]
    assert len(named) > 1
    assert model["is_rebuilt"] == (not arguments)
    assert found["captured_at"].startswith(f"backward #{4 if arguments else 6}")
    assert late or not arguments


def test_without_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program on one process has none; other views cannot be combined with it."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch\ntorch.ones(3, requires_grad=True).sum().backward()\n")
    done = gradinspect("grads", "train.py", "--ranks")
    refused = gradinspect("grads", "train.py", "--ranks", "--by", "node")

    assert (done.returncode, refused.returncode) == (2, 2)
    assert "'train.py' fills no buckets" in done.stderr
    assert "'--ranks' only shows buckets" in refused.stderr
