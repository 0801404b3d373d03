"""What is recorded of torch.compile: how many graphs, where they break, and why functions are compiled again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import SKIPS_CODE_OF_TORCH, gradinspect, unmeasured

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
    def forward(self, x, name="a"):
        BODY
        return self.layers[1](x).square().mean()
net = Net()
compiled = torch.compile(net, backend="aot_eager")
for number in range(CALLS):
    ARGUMENTS
    net.zero_grad()
    compiled(*given).backward()
import torch._dynamo.utils
print({name: dict(torch._dynamo.utils.counters[name]) for name in ("stats", "frames", "graph_break")})
"""
ROWS = "given = (torch.ones(4 + number, 8),)"
BODIES = {
    "print": ('x = self.layers[0](x); print("x"); x = x.sin()', ROWS),
    "branch": ("x = self.layers[0](x).abs() + 1; x = x.sin() if x.sum() > 0 else x", ROWS),
    "loop": ("""for layer in self.layers:
            x = layer(x); print("x")""", ROWS),
    "sizes": ("x = self.layers[0](x)", ROWS),
    "names": ("x = self.layers[0](x) * len(name)", 'given = (torch.ones(4, 8), "a" * (number + 2))'),
    "dynamic": ("x = self.layers[0](x)", f"{ROWS}; torch._dynamo.mark_dynamic(given[0], 0)"),
}  # fmt: skip


def _script(folder: Path, kind: str, calls: int) -> Path:
    body, arguments = BODIES[kind]
    path = folder / "train.py"
    path.write_text(HEAD.replace("BODY", body).replace("ARGUMENTS", arguments).replace("CALLS", str(calls)))
    return path


def _recorded(folder: Path, kind: str, *, backward: int = 2, calls: int = 3) -> tuple[Any, list[dict[str, Any]]]:
    out = folder / "run.json"
    script = _script(folder, kind, calls)
    done = gradinspect("export", script, "--backward", str(backward), "-o", out, "--force")
    graph = json.loads(out.read_text())["graph"]

    assert done.returncode == 0, done.stderr
    return graph["compilation"], graph["frames"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("print", "Failed to trace builtin operator: print"),
        pytest.param("branch", "branch on the value of a tensor", marks=pytest.mark.slow),
    ],
)
def test_a_graph_break_has_its_line_and_reason(tmp_path: Path, kind: str, reason: str) -> None:
    """Both graphs are counted, once for each time they were compiled."""
    found, frames = _recorded(tmp_path, kind)
    (one,) = found["breaks"]

    assert (one["reason"], one["count"], frames[one["frame"]]["line"]) == (reason, 2, 9)
    assert found["num_graphs"] == 4


def test_a_function_with_a_break_in_a_loop_is_told_to_run_in_eager(tmp_path: Path) -> None:
    """TorchDynamo counts no graph and no break there."""
    found, frames = _recorded(tmp_path, "loop")
    (one,) = found["breaks"]

    assert (one["is_skipped"], frames[one["frame"]]["line"], found["num_graphs"]) == (True, 10, 0)


BUCKETS = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo", init_method="file://STORE", rank=0, world_size=1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(3))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).sin()
        return x.sum()
net = COMPILED
net(torch.randn(4, 512)).backward()
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "compiled",
    [
        "DistributedDataParallel(torch.compile(Net(), backend='aot_eager'), bucket_cap_mb=1)",
        "torch.compile(DistributedDataParallel(Net(), bucket_cap_mb=1), backend='aot_eager')",
    ],
)
def test_graphs_of_buckets_have_lines_and_no_modules_of_torch_compile(tmp_path: Path, compiled: str) -> None:
    """There is one for each bucket of gradients, which TorchDynamo notes as a break without a line of the program."""
    script, out = tmp_path / "train.py", tmp_path / "run.json"
    script.write_text(BUCKETS.replace("COMPILED", compiled).replace("STORE", str(tmp_path / "store")))
    done = gradinspect("export", script, "-o", out)

    assert done.returncode == 0, done.stderr
    graph = json.loads(out.read_text())["graph"]
    found = [one for one in graph["compilation"]["breaks"] if one["reason"].startswith("one graph for each bucket")]
    nodes = [node for node in graph["nodes"] if node["kind"] == "compiled" and "function" in node]
    assert sum(one.get("count", 1) for one in found) == len(nodes) > 1
    assert {graph["frames"][one["frame"]]["line"] for one in found} == {12}
    assert all("frame" in one for one in graph["compilation"]["breaks"])
    assert {call["class_name"] for call in graph["modules"]} == {"DistributedDataParallel", "Net", "Linear"}


IN_VAIN = """\
import torch
from torch import nn
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x):
        return self.inner(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(2))
        self.mixed = nn.Sequential(Own(), nn.Tanh())
        self.replaced = nn.Linear(4, 4)
        self.unused = nn.Linear(4, 4)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.replaced(self.mixed(x)).sum()
net = Net()
forward = net.replaced.forward
net.replaced.forward = lambda x: forward(x) * 2
for module in (*net.blocks, net.mixed, net.replaced, net.unused):
    module.compile(backend="aot_eager")
COMPILED(net, torch.randn(2, 4)).backward()
"""


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        ("(lambda net, x: net(x))", ["blocks.0", "blocks.1"] if SKIPS_CODE_OF_TORCH else []),
        pytest.param("(lambda net, x: torch.compile(net, backend='aot_eager')(x))", [], marks=pytest.mark.slow),
    ],
)
def test_modules_that_are_compiled_without_effect_are_named(tmp_path: Path, call: str, paths: list[str]) -> None:
    """Those that have run in eager, and in which nothing was the program's own: `compile()` skips torch's own code."""
    script, out = tmp_path / "train.py", tmp_path / "run.json"
    script.write_text(IN_VAIN.replace("COMPILED", call))
    done = gradinspect("export", script, "-o", out)

    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["graph"]["compilation"].get("uncompiled", []) == paths


@pytest.mark.slow
def test_what_is_compiled_again_has_the_guard_that_did_not_hold(tmp_path: Path) -> None:
    """And the line where its function begins; a size that was said to change is compiled once."""
    found, frames = _recorded(tmp_path, "sizes")
    (one,) = found["recompiles"]

    assert (one["function"], frames[one["frame"]]["line"]) == ("forward", 8)
    assert one["reason"] == "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    assert _recorded(tmp_path, "dynamic")[0] == {"num_graphs": 1}


@pytest.mark.slow
def test_a_function_that_is_compiled_too_often_is_told(tmp_path: Path) -> None:
    """Its last compilation is not one."""
    found, _ = _recorded(tmp_path, "names", backward=10, calls=10)

    assert found["num_graphs"] == 8
    assert [one.get("gives_up", False) for one in found["recompiles"]] == [False] * 7 + [True]
    assert found["recompiles"][0]["reason"] == "name == 'aa'"


@pytest.mark.slow
@pytest.mark.parametrize("kind", BODIES)
def test_nothing_is_compiled_otherwise(tmp_path: Path, kind: str) -> None:
    """The program counts the same graphs, frames and breaks, and prints the same."""
    script = _script(tmp_path, kind, 3)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    traced = gradinspect("trace", script, "--continue", "--backward", "2").stdout

    assert plain.splitlines()[-1] in traced.splitlines()


@pytest.mark.slow
def test_a_program_that_compiles_nothing_has_no_note(tmp_path: Path) -> None:
    """Neither has one that is run in eager."""
    script = _script(tmp_path, "print", 3)

    assert "torch.compile so far" in gradinspect("trace", script).stdout
    assert "torch.compile so far" not in gradinspect("trace", script, "--eager").stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_what_a_plain_run_has_compiled_is_found_on_disk(tmp_path: Path) -> None:
    """And the other way round; also of a model whose layers are called after a graph break."""
    script = _script(tmp_path, "print", 2)
    script.write_text(
        script.read_text().replace("aot_eager", "inductor").replace('"graph_break")', '"aot_autograd", "inductor")')
    )
    environment = {**unmeasured(), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}

    def counted(*words: str) -> str:
        command = [sys.executable, *words, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return next(line for line in done.stdout.splitlines() if line.startswith("{'stats'"))

    first, plain = counted(), counted()
    verbs = ("trace", "grads", "check")

    assert "autograd_cache_miss" in first
    assert "autograd_cache_miss" not in plain
    assert {verb: counted("-m", "gradinspect", verb, "--continue") for verb in verbs} == dict.fromkeys(verbs, plain)
