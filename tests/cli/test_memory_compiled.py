"""`memory --compiled`: what a compiled step keeps under each budget, beside runs with that budget."""

import json
from pathlib import Path

import pytest
from runs import gradinspect, python

HEAD = """
import sys
import torch
import torch._functorch.config
from torch import nn
torch.manual_seed(0)
if len(sys.argv) > 1:
    torch._functorch.config.activation_memory_budget = float(sys.argv[1])
"""
WHOLE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 64)
        self.down = nn.Linear(64, 16)
    def forward(self, x):
        return x + nn.functional.dropout(self.down(nn.functional.gelu(self.up(self.norm(x)))), 0.1)
model = torch.compile(nn.Sequential(Block(), Block(), Block()), backend="aot_eager")
x = torch.randn(32, 16)
loss = model(x).square().mean()
"""
REGIONS = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)
    def forward(self, x):
        x = torch.tanh(x) * x.sigmoid()
        torch._dynamo.graph_break()
        return x + self.down(torch.relu(self.up(x)).exp())
model = nn.Sequential(nn.Linear(4, 16), Block(), nn.GELU(), Block(), nn.Linear(16, 1))
for block in (model[1], model[3]):
    block.compile(backend="aot_eager_decomp_partition")
x = torch.randn(8, 4)
loss = (model(x) - x.sum(-1, keepdim=True)).square().mean()
"""
FUNCTION = """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)
layer, w = nn.Linear(8, 24), nn.Parameter(torch.ones(24))
@torch.compile(backend="aot_eager", dynamic=True)
def loss_of(x):
    y = torch.utils.checkpoint.checkpoint(lambda z: torch.sin(layer(z)).cos(), x, use_reentrant=False)
    return Scale.apply(y.exp(), w).logsumexp(-1).mean(), y
loss, hidden = loss_of(torch.randn(7, 8))
loss = loss + hidden.square().mean()
"""
BRANCHED = """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.small = nn.Linear(16, 64), nn.Linear(64, 16), nn.Linear(16, 16)
    def forward(self, x):
        h = torch.tanh(self.up(x))
        if h.mean() > 10:
            return self.down(h) + x
        return self.small(x) + x
gates = nn.ModuleList(Gate() for _ in range(3))
@torch.compile(backend="aot_eager_decomp_partition")
def model(x):
    for gate in gates:
        x = gate(x)
    return x
loss = model(torch.randn(32, 16)).square().mean()
"""
WITNESS = """
def held(root):
    modules = [one for one in globals().values() if isinstance(one, nn.Module)]
    weights = [w for m in modules for w in (*m.parameters(), *m.buffers())]
    there = {w.untyped_storage()._cdata for w in weights}
    seen, todo, found = set(), [root], {}
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for name in dir(node):
            if name.startswith("_raw_saved_"):
                raw = getattr(node, name)
                for one in raw if isinstance(raw, (list, tuple)) else (raw,):
                    if isinstance(one.data, torch.Tensor) and one.data.untyped_storage()._cdata not in there:
                        found[one.data.untyped_storage()._cdata] = one.data.untyped_storage().nbytes()
        todo += [following for following, _ in node.next_functions]
    return sum(found.values())
if len(sys.argv) > 1:
    print(held(loss.grad_fn), flush=True)
"""
BRANCHES = """def forward(self, x):
        if x.abs().max() > 1000:
            raise ValueError(x)"""
END = "loss.backward()\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "budgets"),
    [
        (WHOLE, ("0", "0.3", "0.6", "1")),
        (REGIONS, ("0", "0.5", "1")),
        (FUNCTION, ("0", "0.5", "1")),
        (BRANCHED, ("0", "1")),  # what the branch is decided by is computed in compiled code, and never used
    ],
    ids=["whole", "regions", "function", "branched"],
)
def test_what_is_kept_is_that_of_a_run_with_the_budget(program: str, budgets: tuple[str, ...], tmp_path: Path) -> None:
    """To the byte, by a walk over the raw saved tensors of the whole graph."""
    script = tmp_path / "train.py"
    script.write_text(HEAD + program + WITNESS + END)
    done = gradinspect("memory", script, "--compiled", "--format", "json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["compiled"]
    kept = {f"{row['budget']:g}": row["kept_bytes"] for row in found["rows"]}
    assert found["notes"] == []
    assert kept["1"] == found["walked_bytes"]
    for budget in budgets:
        ran = python(script, budget)
        assert ran.returncode == 0, ran.stderr
        assert kept[budget] == int(ran.stdout.split()[-1])


MEASURED = """
from torch.profiler import ProfilerActivity, profile
if len(sys.argv) > 1:
    loss.backward()
    model.zero_grad()
    del loss
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        model(x).square().mean().backward()
    now = most = 0
    memory = [event for event in prof.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(memory, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    print(most + x.nbytes, flush=True)  # it was there before, and is kept
    sys.exit()
"""
IMAGES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, 3, 1, 1)
        self.up = nn.ConvTranspose2d(16, 3, 4, 2, 1)
    def forward(self, x):
        y = torch.relu(self.bn(self.conv1(x)))
        return self.up(self.conv2(y) + y)
model = torch.compile(Net(), backend="aot_eager"OPTIONS)
x = torch.randn(4, 3, 20, 20)
loss = model(x).square().mean()
"""
TOKENS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
    def forward(self, x):
        return self.layer(self.embed(x)).cumsum(1)
model = torch.compile(Net(), backend="aot_eager")
x = torch.randint(0, 40, (8, 16))
loss = model(x).square().mean()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "num_outputs"),
    [
        (WHOLE, 32 * 16),
        (IMAGES.replace("OPTIONS", ""), 4 * 3 * 20 * 20),
        pytest.param(IMAGES.replace("OPTIONS", ", dynamic=True"), 4 * 3 * 20 * 20, marks=pytest.mark.sweep),
        pytest.param(TOKENS, 8 * 16 * 32, marks=pytest.mark.sweep),
    ],
    ids=["whole", "images", "images of any size", "tokens"],
)
def test_the_peak_is_what_the_allocator_measures(program: str, num_outputs: int, tmp_path: Path) -> None:
    """But for what operators outside of compiled code, here those of the loss, need while they run."""
    script = tmp_path / "train.py"
    script.write_text(HEAD + program + MEASURED + END)
    done = gradinspect("memory", script, "--compiled", "--format", "json")

    assert done.returncode == 0, done.stderr
    peaks = {f"{row['budget']:g}": row["peak_bytes"] for row in json.loads(done.stdout)["compiled"]["rows"]}
    for budget in ("0", "0.5", "1"):
        ran = python(script, budget)
        assert ran.returncode == 0, ran.stderr
        assert 0 <= int(ran.stdout.split()[-1]) - peaks[budget] <= 2 * num_outputs * 4
    assert len(set(peaks.values())) > 1


@pytest.mark.slow
def test_what_cannot_stand_beside_is_said(tmp_path: Path) -> None:
    """No checkpoint of blocks that the program calls itself."""
    script = tmp_path / "train.py"
    called = "h = torch.randn(8, 16)\nfor block in blocks:\n    h = torch.compile(block, backend='aot_eager')(h)\n"
    blocks = "blocks = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(3)]\n"
    script.write_text(HEAD + blocks + called + "loss = h.sum()\n" + END)
    done = gradinspect("memory", script, "--compiled")
    said = " ".join(done.stdout.split())

    assert done.returncode == 0, done.stderr
    assert "No checkpoint stands beside it: no module that the program calls has repeated blocks inside." in said


@pytest.mark.slow
def test_a_program_that_reads_values_is_compared_with_its_checkpointed_one(tmp_path: Path) -> None:
    """Its eager step runs on fake tensors, with the values that a real one has read."""
    script = tmp_path / "train.py"
    reads = WHOLE.replace("model(x).square().mean()", "model(x).square().mean()\nassert 0 < loss < 100")
    script.write_text(HEAD + reads.replace("def forward(self, x):", BRANCHES) + END)
    done = gradinspect("memory", script, "--compiled", "--format", "json")

    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["without"]
    assert [row["what"] for row in rows] == ["eager", "eager, checkpoint model.0-2"]
    assert rows[1]["kept_bytes"] < rows[0]["kept_bytes"]


CHECKPOINTED = """
class Net(nn.Sequential):
    def forward(self, x):
        for number, block in enumerate(self):
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if number < NUMBER else block(x)
        return x
"""


@pytest.mark.slow
def test_what_the_program_checkpoints_itself_is_said(tmp_path: Path) -> None:
    """And not checkpointed once more; of equal blocks only the rest is."""
    script = tmp_path / "train.py"
    text = HEAD + WHOLE.replace("model =", f"{CHECKPOINTED}model =").replace("nn.Sequential(", "Net(") + END
    found = {}
    for number in (3, 1):
        script.write_text(text.replace("NUMBER", str(number)))
        done = gradinspect("memory", script, "--compiled", "--format", "json")
        assert done.returncode == 0, done.stderr
        found[number] = json.loads(done.stdout)["without"]

    assert [row["what"] for row in found[3]] == ["eager"]
    assert found[3][0]["note"].startswith("The program checkpoints model.0-2 itself, ")
    assert [row["what"] for row in found[1]] == ["eager", "eager, checkpoint model.1-2"]
    assert found[1][0]["note"].startswith("The program checkpoints model.0 itself, ")


def test_what_cannot_be_answered_is_said(tmp_path: Path) -> None:
    """A program that compiles nothing, a backend without a partitioner, and options of one moment."""
    script = tmp_path / "train.py"
    script.write_text(HEAD + "model = nn.Linear(4, 1)\nx = torch.randn(2, 4)\nloss = model(x).sum()\n" + END)
    done = gradinspect("memory", script, "--compiled")
    assert done.returncode == 2
    assert "has no backward graph of torch.compile in its first backward call" in done.stderr

    script.write_text(script.read_text().replace("nn.Linear(4, 1)", "torch.compile(nn.Linear(4, 1), backend='eager')"))
    done = gradinspect("memory", script, "--compiled")
    assert done.returncode == 2
    assert "has no backward graph of torch.compile in its first backward call" in done.stderr

    done = gradinspect("memory", script, "--compiled", "--by", "line")
    assert done.returncode == 2
    assert "'--by' cannot be combined with '--compiled'" in done.stderr


UNCUT = """
import torch
from functorch.compile import nop
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
def cut(joint, inputs, **kwargs):
    if config.activation_memory_budget == 0.5:
        raise ValueError("no half measures")
    return min_cut_rematerialization_partition(joint, inputs, **kwargs)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
compiled = torch.compile(model, backend=aot_autograd(fw_compiler=nop, bw_compiler=nop, partition_fn=cut))
compiled(torch.randn(4, 8)).sum().backward()
"""


@pytest.mark.slow
def test_a_budget_that_cannot_be_tried_is_said(tmp_path: Path) -> None:
    """And not counted as another one."""
    script = tmp_path / "uncut.py"
    script.write_text(UNCUT)
    done = gradinspect("memory", "--compiled", script, "--format", "json")
    table = json.loads(done.stdout)["compiled"]

    assert done.returncode == 0, done.stderr
    assert 0.5 not in [row["budget"] for row in table["rows"]]
    assert any(
        note.startswith("Not known under budget 0.5, since 1 graph could not be cut (ValueError)")
        for note in table["notes"]
    )
