"""`gradinspect plan`: what it predicts is what the allocator reports, and what it prints works when it is pasted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from runs import gradinspect, python
from step_memory_programs import GPT_HEAD, PROGRAMS

GPT = (
    GPT_HEAD
    + """
model = GPT(vocabulary=20, layers=2, length=32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    tokens = torch.randint(20, (8, 32))
    loss = gpt_loss(model, tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
RESNET = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.second, self.last = nn.Linear(width, width), nn.BatchNorm1d(width)
    def forward(self, x):
        return x + self.last(self.second(self.norm(self.first(x)).relu()))

torch.manual_seed(0)
net = nn.Sequential(*(Block(24) for _ in range(4)))
for _ in range(2):
    net(torch.randn(256, 24)).square().mean().backward()
    net.zero_grad()
print([float(norm.running_mean.sum()) for norm in net.modules() if isinstance(norm, nn.BatchNorm1d)],
      int(net[0].norm.num_batches_tracked))
"""
BATCHES = """
import torch
from torch import nn

batch_size = 64
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(64):
    x = torch.randn(100 * batch_size, 8)
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CACHED = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(64, 256), nn.Linear(256, 64)
    def forward(self, x, cache):
        cache.append(x)
        return self.last(self.first(torch.cat(cache)).relu())[-len(x):]

class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList(Block() for _ in range(4))
    def forward(self, x):
        cache = []
        for block in self.h:
            x = block(x, cache)
        return x

torch.manual_seed(0)
net = Cached()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(256, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FLAT = """
import torch
from torch import nn

torch.manual_seed(0)
parts = []
for _ in range(8):
    parts += [nn.Linear(32, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.1, inplace=True), nn.Dropout(0.1)]
net = nn.Sequential(*parts)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.randn(256, 32)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print([float(value.double().sum()) for value in net.state_dict().values()])
"""
WRITING = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)
    def forward(self, x):
        return self.down(torch.relu(self.up(x.mul_(0.9))))

net = nn.Sequential(nn.Linear(16, 16), *(Block() for _ in range(4)))
for _ in range(2):
    net(torch.randn(256, 16)).square().mean().backward()
    net.zero_grad()
"""
STEPPING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.AdamW(model.parameters())
for number in range(3):
    loss = model(torch.randn(8, 32)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
HOLDING = (
    """
import torch
from engine import train

torch.manual_seed(0)
train(torch.nn.Linear(64, 900))
""",
    """import torch

def train(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = []
    for _ in range(3):
        out = net(torch.randn(512, 64))
        loss = torch.nn.functional.cross_entropy(out, torch.randint(900, (512,)))
        kept.append(torch.zeros(60000))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
""",
)


VALIDATING = """
import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 2000, bias=False)
    def forward(self, x, y):
        logits = self.head(self.body(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
        return logits, loss

torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x, y = torch.randn(4, 128, 8), torch.randint(2000, (4, 128))
with torch.no_grad():
    model(x, y)
for _ in range(3):
    _, loss = model(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LEAVING = """
import random
import torch
from torch import nn

class Leaving(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.calls = nn.Linear(24, 48), nn.Linear(48, 24), 1
        self.register_buffer("scale", torch.ones(24))
        self.seen = []
    def forward(self, x):
        {line}
        return x + self.second(self.first(x * self.scale / self.calls).sigmoid())

net = nn.Sequential(*(Leaving() for _ in range(4)))
for _ in range(2):
    net(torch.randn(256, 24)).square().mean().backward()
    net.zero_grad()
"""
ONE_IN_THREE = """
import torch
from torch import nn

critic, generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)), nn.Linear(4, 16)
of_critic = torch.optim.Adam(critic.parameters())
of_generator = torch.optim.Adam(generator.parameters())
for _ in range(3):
    for _ in range(2):
        loss = critic(generator(torch.randn(50, 4)).detach()).mean() - critic(torch.randn(50, 16)).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
    of_generator.zero_grad()
    (-critic(generator(torch.randn(50, 4))).mean()).backward()
    of_generator.step()
"""


def planned(program: str, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Plan for a program, and return the status and what was printed last."""
    (folder / "train.py").write_text(program)
    done = gradinspect("plan", "train.py", "--format", "json", *options, cwd=folder)
    assert done.stdout, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout[done.stdout.index('{\n  "source"') :])
    return done.returncode, figures


@pytest.mark.slow
def test_the_cheapest_plan_is_what_it_says(tmp_path: Path) -> None:
    """With dropout: its peak is the allocator's, RNG state included, its gradients are those of the plain run."""
    status, figures = planned(GPT, tmp_path, "--fit", "1000KiB", "--try")
    best = figures["plans"][0]

    assert status == 0
    assert best["peak_bytes"] <= 1000 * 1024 < figures["peak_bytes"]
    assert best["measured_peak_bytes"] == best["peak_bytes"]
    assert best["plain_measured_peak_bytes"] == figures["peak_bytes"]
    assert best["bit_equal"] is True
    assert best["num_gradients"] > 0
    assert 0 < best["seconds"][0] <= best["seconds"][1]
    assert 1 <= best["flops_ratio"] <= 4 / 3
    assert [plan["flops_ratio"] for plan in figures["plans"]] == sorted(
        plan["flops_ratio"] for plan in figures["plans"]
    )


@pytest.mark.slow
def test_where_no_plan_fits_it_says_what_stands_in_the_way(tmp_path: Path) -> None:
    """Exit 1, with the lowest peak, its moment and line, and the plan that reaches it; only its code is wide."""
    (tmp_path / "train.py").write_text(PROGRAMS["SGD"])
    done = gradinspect("plan", "train.py", "--fit", "1KiB", cwd=tmp_path)
    said, found, after = done.stdout.partition("\nwhat comes closest\n")
    steps = after.partition("\ncode to paste")[0]

    assert done.returncode == 1
    assert re.match(r"No plan tried goes below \d+\.\d KiB, the limit is [^:]+: [^:]+,\strain\.py:\d+\.\n", done.stdout)
    assert found
    assert "At that moment there are: " in said
    assert "The largest tensor of the step: " in said
    assert "\nTried: " in said
    assert len(said.splitlines()) <= 11
    told = re.findall(r"tried (\d+) plans? in \d+ s, lowest peak (\d+\.\d) KiB", done.stderr)
    assert len(told) > 1
    assert [int(number) for number, _ in told] == sorted({int(number) for number, _ in told})
    assert [float(peak) for _, peak in told] == sorted((float(peak) for _, peak in told), reverse=True)
    assert max(map(len, [*said.splitlines(), *steps.splitlines(), *done.stderr.splitlines()])) <= 80


@pytest.mark.slow
def test_a_budget_ends_the_search(tmp_path: Path) -> None:
    """Without any time, the program is run as it is, and no plan is claimed to be the lowest."""
    status, figures = planned(PROGRAMS["SGD"], tmp_path, "--fit", "1KiB", "--budget", "0s")

    assert (status, figures["is_cut"], figures["num_runs"]) == (1, True, 1)
    assert figures["sentence"].startswith("No plan was found in time; the lowest peak is ")
    assert sum(figures["lowest"]["alive"].values()) == figures["peak_bytes"]


@pytest.mark.slow
def test_modules_with_a_cache_are_named_which_cannot_be_checkpointed(tmp_path: Path) -> None:
    """What they compute again has the cache of the first time; without one they can be."""
    script = tmp_path / "train.py"
    script.write_text(CACHED)
    cached = gradinspect("plan", script, "--fit", "2MiB")
    script.write_text(CACHED.replace("cache.append(x)", "cache = [x]"))
    without = gradinspect("plan", script, "--fit", "2MiB")

    assert "Not possible: checkpoint h.0-3 Block" in cached.stdout
    assert "use_cache=False" in " ".join(cached.stdout.split())
    assert "Not possible" not in without.stdout


@pytest.mark.slow
def test_gradients_that_are_cleared_late_are_freed_early(tmp_path: Path) -> None:
    """The line is named, and freeing them costs nothing."""
    program = PROGRAMS["zeroed in place"]
    status, plain = planned(program, tmp_path, "--fit", "1GiB")
    peak = plain["peak_bytes"]
    _, figures = planned(program, tmp_path, "--fit", str(peak - 1), "--try")
    best = figures["plans"][0]
    number = next(n for n, line in enumerate(program.splitlines(), 1) if "zero_grad" in line)

    assert status == 0
    assert [plan["change"] for plan in plain["plans"]] == ["no change"]
    assert plain["num_runs"] == 1
    assert best["change"] == "free gradients right after the optimizer's step"
    assert best["edits"][0].startswith(f"at train.py:{number}: remove ")
    assert best["flops_ratio"] == 1
    assert best["measured_peak_bytes"] == best["peak_bytes"] < peak
    assert best["bit_equal"] is True


@pytest.mark.slow
def test_an_optimizer_that_steps_once_in_three_times_is_waited_for(tmp_path: Path) -> None:
    """As `fit` does, also in a copy of the process, where the collector does not see what was there before."""
    _, plain = planned(ONE_IN_THREE, tmp_path, "--fit", "1GiB")
    figures = gradinspect("fit", "train.py", "--format", "json", cwd=tmp_path)

    assert plain["peak_bytes"] == json.loads(figures.stdout)["peak_bytes"]


@pytest.mark.slow
def test_what_is_pasted_has_the_peak_that_was_promised(tmp_path: Path) -> None:
    """At the line that is named; batch norms do not notice that they are computed twice."""
    peak = planned(RESNET, tmp_path, "--fit", "1GiB")[1]["peak_bytes"]
    limit = str(peak * 6 // 10)
    done = gradinspect("plan", "train.py", "--fit", limit, cwd=tmp_path)
    after = re.search(r"^code to paste after train\.py:(\d+)\n", done.stdout, re.MULTILINE)
    assert after is not None
    code = done.stdout[after.end() :]
    lines = RESNET.splitlines(keepends=True)
    (tmp_path / "pasted.py").write_text("".join([*lines[: int(after[1])], code, *lines[int(after[1]) :]]))
    _, figures = planned(RESNET, tmp_path, "--fit", limit)
    measured = gradinspect("fit", "pasted.py", "--real", "--format", "json", "--quiet-script", cwd=tmp_path)

    assert json.loads(measured.stdout)["peak_bytes"] == figures["plans"][0]["peak_bytes"]
    assert python(tmp_path / "pasted.py").stdout == python(tmp_path / "train.py").stdout


@pytest.mark.slow
def test_a_flat_sequential_is_cut_into_segments(tmp_path: Path) -> None:
    """Where no module by itself helps: the peak is the allocator's, and dropout and batch norms are those of before."""
    peak = planned(FLAT, tmp_path, "--fit", "1GiB")[1]["peak_bytes"]
    _, figures = planned(FLAT, tmp_path, "--fit", str(peak * 6 // 10))
    best = figures["plans"][0]
    lines = FLAT.splitlines(keepends=True)
    after = next(number for number, line in enumerate(lines, 1) if line.startswith("net = "))
    (tmp_path / "pasted.py").write_text("".join([*lines[:after], best["code"], *lines[after:]]))
    measured = gradinspect("fit", "pasted.py", "--real", "--format", "json", "--quiet-script", cwd=tmp_path)

    assert re.fullmatch(r"checkpoint net Sequential in \d segments, all but the last", best["change"])
    assert not any(start % 4 == 2 for start in best["changes"][0]["starts"])  # a LeakyReLU writes to its input
    assert best["peak_bytes"] <= peak * 6 // 10
    assert best["flops_ratio"] < 4 / 3
    assert json.loads(measured.stdout)["peak_bytes"] == pytest.approx(best["peak_bytes"], rel=0.001)
    assert python(tmp_path / "pasted.py").stdout == python(tmp_path / "train.py").stdout


@pytest.mark.slow
def test_what_writes_to_its_input_is_not_computed_again(tmp_path: Path) -> None:
    """It would begin with what it has written, and gradients would be wrong."""
    _, figures = planned(WRITING, tmp_path, "--fit", "1KiB")

    assert "Block" not in json.dumps(figures["lowest"]["changes"])
    assert "Sequential" not in json.dumps(figures["lowest"]["changes"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("self.calls += 1", "When it runs again, "),
        ("self.seen.append(0)", "When it runs again, it changes 'seen' of Leaving (train.py:13), with which"),
        ("self.scale.mul_(0.9)", "Its forward changes the buffer 'scale' of Leaving"),
        ("self.scale.data.mul_(0.9)", "When it runs again, aten.mul_.Tensor is not given what it was given before"),
        ("self.calls = random.random()", "Its forward"),
        ("x, self.last = x - getattr(self, 'last', x).mean(0), x.detach()", "When it runs again, aten.mean.dim is not"),
    ],
)
def test_what_goes_on_with_what_it_has_left_is_not_computed_again(line: str, why: str, tmp_path: Path) -> None:
    """A spectral norm or a codebook would be updated twice; other blocks are checkpointed."""
    _, figures = planned(LEAVING.format(line=line), tmp_path, "--fit", "1KiB")
    checkpoints = [one for one in figures["lowest"]["changes"] if one["kind"].startswith("checkpoint")]

    assert any(f"Not possible: checkpoint net.0-3 Leaving x4. {why}" in note for note in figures["notes"])
    assert {one["class_name"] for one in checkpoints} <= {"Linear"}


@pytest.mark.slow
def test_what_writes_the_same_anew_is_computed_again(tmp_path: Path) -> None:
    """A block that keeps what others may read, such as its last size, leaves it as it was."""
    line = "self.seen = [len(x), x.detach()]; self.calls = float(len(x))"
    _, figures = planned(LEAVING.format(line=line), tmp_path, "--fit", "1KiB", "--try")

    assert "Leaving" in {one.get("class_name") for one in figures["lowest"]["changes"]}
    assert not any("Not possible" in note for note in figures["notes"])


@pytest.mark.slow
def test_gradients_that_are_read_after_the_step_are_not_freed_before(tmp_path: Path) -> None:
    """As where their norm decides the next learning rate."""
    program = PROGRAMS["zeroed in place"]
    line = next(line for line in program.splitlines() if "optimizer.step()" in line)
    indent = line[: len(line) - len(line.lstrip())]
    reading = f"{line}\n{indent}norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]"
    _, figures = planned(program.replace(line, reading), tmp_path, "--fit", "1KiB")

    assert "gradients freed earlier" not in json.dumps(figures)
    assert "free gradients" not in json.dumps(figures)


@pytest.mark.slow
def test_optimizers_step_inside_backward(tmp_path: Path) -> None:
    """Gradients are never there together; parameters are compared, as there is no gradient after backward."""
    peak = planned(STEPPING, tmp_path, "--fit", "1GiB")[1]["peak_bytes"]
    _, figures = planned(STEPPING, tmp_path, "--fit", str(peak - 10_000), "--try")
    best = figures["plans"][0]

    assert best["change"] == "step optimizer inside backward, parameter by parameter"
    assert [change["kind"] for change in best["changes"]] == ["step in backward"]
    assert best["peak_bytes"] == best["measured_peak_bytes"] <= peak - 10_000
    assert (best["flops_ratio"], best["compared"], best["num_gradients"], best["bit_equal"]) == (
        1, "parameters", 6, True)  # fmt: skip
    assert best["optimizer_code"].endswith("\n\nstep_in_backward(optimizer)\n")


@pytest.mark.slow
def test_optimizers_use_other_kernels(tmp_path: Path) -> None:
    """Without foreach to the last bit; fused ones if nothing else fits. The peaks are those of the edited lines."""
    program = STEPPING.replace("AdamW(model.parameters()", "AdamW(model.parameters(), foreach=True")
    program = program.replace("nn.Linear(64, 64)", "*(nn.Linear(64, 64) for _ in range(4))")
    program = program.replace(
        "    optimizer.step()", "    nn.utils.clip_grad_value_(model.parameters(), 9)\n    optimizer.step()"
    )
    plain, loop, fused = (
        planned(program.replace("foreach=True", option), tmp_path, "--fit", "1GiB")[1]["peak_bytes"]
        for option in ("foreach=True", "foreach=False", "fused=True")
    )
    exact, rounded = (
        planned(program, tmp_path, "--fit", str(limit), "--try")[1]["plans"][0] for limit in (loop, fused)
    )

    assert fused < loop < plain
    line = "train.py:7, optimizer = torch.optim.AdamW(model.parameters(), foreach=True)"
    assert exact["change"] == "step optimizer with foreach=False"
    assert exact["edits"] == [f"at {line}: write foreach=False"]
    assert (exact["peak_bytes"], exact["measured_peak_bytes"], exact["bit_equal"]) == (loop, loop, True)
    assert rounded["change"] == "step optimizer with fused=True"
    assert (rounded["peak_bytes"], rounded["measured_peak_bytes"], rounded["exact"]) == (fused, fused, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("    optimizer.step()\n", "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n",
         "the program takes gradients between backward and zero_grad() (train.py:11)"),
        ("    optimizer.step()\n", "    optimizer.step()\n    print(model[0].bias.grad is None)\n",
         "the program takes gradients between backward and zero_grad() (train.py:12)"),
        ("    optimizer.step()\n", "    optimizer.step()\n    if number > 99:\n        print(model[0].bias.grad)\n",
         "the program may take gradients later, on a line that has not done so yet (train.py:13)"),
        ("    optimizer.step()\n", "    norm = model[0].weight.norm()\n    optimizer.step()\n",
         "the program takes parameters between backward and zero_grad() (train.py:11)"),
        ("    optimizer.step()\n", "    optimizer.param_groups[0]['lr'] = 0.1 / (number + 1)\n    optimizer.step()\n",
         "the optimizer's options change between backward and step() (train.py:12)"),
        ("optimizer = torch.optim.AdamW(", "class Own(torch.optim.SGD): pass\noptimizer = Own(",
         "Own may look at all parameters together"),
    ],
    ids=["clipped", "logged", "logged later", "a parameter", "a rate", "not torch's"],
)  # fmt: skip
def test_what_looks_at_gradients_steps_after_backward(before: str, after: str, why: str, tmp_path: Path) -> None:
    """It would see none, or those of other parameters; the line is named."""
    _, figures = planned(STEPPING.replace(before, after), tmp_path, "--fit", "1KiB", "--budget", "0s")

    assert figures["stepping_refused"] == why


def test_counting_work_does_not_change_the_peak(tmp_path: Path) -> None:
    """Gradients that meet are added in place under `plan` as under `fit`."""
    program = PROGRAMS["gradients that meet"]
    _, figures = planned(program, tmp_path, "--fit", "1GiB")
    fit = gradinspect("fit", "train.py", "--format", "json", "--quiet-script", cwd=tmp_path)

    assert figures["peak_bytes"] == json.loads(fit.stdout)["peak_bytes"]


@pytest.mark.slow
def test_a_large_vocabulary_is_divided(tmp_path: Path) -> None:
    """Where nothing else is enough: its peak is the allocator's, its gradients are rounded otherwise, or not at all."""
    program = GPT.replace("vocabulary=20, layers=2", "vocabulary=2000, layers=1")
    status, figures = planned(program, tmp_path, "--fit", "3500KiB", "--try")
    best = figures["plans"][0]

    assert status == 0
    assert best["change"].endswith("compute the cross-entropy of head in 8 chunks")
    assert best["exact"] is False
    assert best["measured_peak_bytes"] == pytest.approx(best["peak_bytes"], rel=0.001)
    assert best["peak_bytes"] < figures["peak_bytes"] / 2
    assert best["flops_ratio"] > 1
    assert best["difference"] < 1e-6
    assert "def chunked_cross_entropy(" in best["functions"]
    assert re.fullmatch(r"at train\.py:\d+, .*: give what head is given at train\.py:\d+ to .*", best["edits"][0])


@pytest.mark.slow
def test_a_function_with_logits_and_loss_is_edited_for_validations_too(tmp_path: Path) -> None:
    """Its logits are not made before the first step either: they would be the peak."""
    _, figures = planned(VALIDATING, tmp_path, "--fit", "3MiB", "--try", "--budget", "600s")
    best = figures["plans"][0]

    assert "in 8 chunks" in best["change"] or "in 32 chunks" in best["change"]
    assert best["peak_bytes"] < 3 * 2**20 < figures["peak_bytes"] / 2
    assert best["measured_peak_bytes"] == best["peak_bytes"]


@pytest.mark.slow
def test_the_work_of_a_split_batch_is_that_of_the_whole(tmp_path: Path) -> None:
    """Also where a step begins with an operator that is counted."""
    program = BATCHES.replace("    x = torch.randn(100 * batch_size, 8)\n", "").replace("nn.BatchNorm1d(16), ", "")
    program = program.replace("for _ in", "x = torch.randn(100 * batch_size, 8)\nfor _ in")
    _, figures = planned(program, tmp_path, "--fit", "800KiB", "--split", "batch_size")
    split = [plan for plan in figures["plans"] if "batches of batch_size" in plan["change"]]

    assert split
    assert {plan["flops_ratio"] for plan in split} == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("as bfloat16", "tensor.to(torch.bfloat16)"),
        ("under autocast to bfloat16", "with torch.autocast(device, torch.bfloat16):"),
    ],
    ids=["saves", "autocast"],
)
def test_half_precision_comes_last_and_needs_what_it_says(change: str, line: str, tmp_path: Path) -> None:
    """If that is asked for, last: its peak is the allocator's when the code is pasted."""
    program = GPT.replace("    optimizer.zero_grad()\n", "") + "    optimizer.zero_grad()\n"
    _, figures = planned(program, tmp_path, "--fit", "1100KiB", "--inexact")
    best = next(plan for plan in figures["plans"] if change in plan["change"])

    assert "bfloat16" in figures["plans"][-1]["change"]
    assert not best["exact"]
    assert best["moved_bytes"] == 0
    assert best["flops_ratio"] == 1
    assert line in best["code"]

    assert not any("offload" in plan["change"] for plan in figures["plans"])  # on the CPU nothing is gained by it

    lines = program.splitlines(keepends=True)
    after = next(number for number, line in enumerate(lines, 1) if line.startswith("optimizer = "))
    pasted = [*lines[:after], best["code"], best["optimizer_code"], *lines[after:]]
    (tmp_path / "pasted.py").write_text("".join(pasted))
    measured = gradinspect("fit", "pasted.py", "--real", "--format", "json", cwd=tmp_path)

    assert json.loads(measured.stdout)["peak_bytes"] == best["peak_bytes"]


@pytest.mark.slow
def test_autocast_besides_checkpoints_needs_what_it_says(tmp_path: Path) -> None:
    """Where nothing fits: the peak is the allocator's when the code is pasted; other optimizers are named."""
    status, figures = planned(GPT, tmp_path, "--fit", "1KiB")
    lowest = figures["lowest"]
    lines = GPT.splitlines(keepends=True)
    after = next(number for number, line in enumerate(lines, 1) if line.startswith("optimizer = "))
    (tmp_path / "pasted.py").write_text("".join([*lines[:after], lowest["code"], *lines[after:]]))

    assert status == 1
    assert re.search(r"checkpoint .*; run .* under autocast to bfloat16", lowest["change"])
    if not lowest["optimizer_code"] and not lowest["edits"]:
        measured = gradinspect("fit", "pasted.py", "--real", "--format", "json", cwd=tmp_path)
        assert json.loads(measured.stdout)["peak_bytes"] == lowest["peak_bytes"]
    assert [state["optimizer"] for state in figures["other_states"]][-1] == "Adafactor"


@pytest.mark.slow
def test_saved_tensors_are_offloaded_from_a_device(tmp_path: Path) -> None:
    """After the plans that move nothing, with the code and what is moved."""
    status, figures = planned(
        GPT.replace("20, layers=2", "20, layers=4"), tmp_path, "--fit", "3MiB", "--device", "cuda"
    )
    moving = [plan for plan in figures["plans"] if plan["moved_bytes"]]

    assert status == 0
    assert figures["plans"][-len(moving) :] == moving
    assert re.fullmatch(r".*offload what blocks\.0(-\d)? Block x\d( of 4)? saves to the CPU", moving[0]["change"])
    assert moving[0]["flops_ratio"] == 1
    assert moving[0]["exact"]
    assert figures["peak_bytes"] == 2 * moving[0]["peak_bytes"]  # segments of 2 MiB
    assert "pin_memory=" in moving[0]["code"]


@pytest.mark.slow
def test_a_compiled_module_does_not_warn_about_our_hooks(tmp_path: Path) -> None:
    """It is run as it is, and nothing of torch's is printed that a plain run does not print."""
    (tmp_path / "train.py").write_text(
        BATCHES.replace("optimizer =", "compiled = torch.compile(net)\noptimizer =").replace(
            "= net(x)", "= compiled(x)"
        )
    )
    done = gradinspect("plan", "train.py", "--fit", "1MiB", cwd=tmp_path)

    assert done.stdout.startswith(("It fits with a change: ", "No plan tried goes below "))
    assert [
        line
        for line in done.stderr.splitlines()
        if not line.startswith(("first estimate, ", "first that fits, ", "tried ", "  "))
    ] == []


COMPILED = (
    RESNET.rpartition("print(")[0]
    .replace("BatchNorm1d", "LayerNorm")
    .replace("for _ in range(2)", "{compiled}\nfor _ in range(2)")
    + """
from torch._dynamo.utils import counters
print(counters["stats"].get("unique_graphs"), dict(counters["graph_break"]))
"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiled", "breaks"),
    [
        ("for block in net: block.compile(backend='aot_eager')", True),
        ("net.compile(backend='aot_eager')", True),
        ("for n in range(4): net[n] = torch.compile(net[n], backend='aot_eager')", False),
    ],
    ids=["blocks", "model", "wrapped blocks"],
)
def test_what_is_pasted_breaks_no_compiled_graph(compiled: str, breaks: bool, tmp_path: Path) -> None:
    """As many graphs as before, and none broken: hooks of saved tensors are offered around compiled code only."""
    program = COMPILED.format(compiled=compiled)
    (tmp_path / "train.py").write_text(program)
    _, figures = planned(program, tmp_path, "--fit", "1KiB", "--inexact")
    done = gradinspect("plan", "train.py", "--fit", "1KiB", "--inexact", cwd=tmp_path)
    lines = program.splitlines(keepends=True)
    after = next(number for number, line in enumerate(lines, 1) if line.startswith("net = "))
    (tmp_path / "pasted.py").write_text("".join([*lines[:after], figures["lowest"]["code"], *lines[after:]]))

    assert ("Not possible: bfloat16 saves inside of what torch.compile" in done.stdout) == breaks
    assert "checkpoint" in figures["lowest"]["change"]
    assert python(tmp_path / "pasted.py").stdout == python(tmp_path / "train.py").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiled", "called", "is_refused"),
    [
        ("model.compile(backend='aot_eager')", "model(", True),
        ("run = torch.compile(model, backend='aot_eager')", "run(", True),
        ("run = torch.compile(lambda x: model(x), backend='aot_eager')", "run(", True),
        ("for layer in model: layer.compile(backend='aot_eager')", "model(", False),
    ],
    ids=["in place", "wrapped", "function", "layers"],
)
def test_gradients_that_come_together_are_not_freed_one_by_one(
    compiled: str, called: str, is_refused: bool, tmp_path: Path
) -> None:
    """One node of backward returns those of all that is compiled together: stepping inside backward saves nothing."""
    program = STEPPING.replace("for number", f"{compiled}\nfor number").replace("loss = model(", f"loss = {called}")
    _, figures = planned(program, tmp_path, "--fit", "1KiB", "--budget", "0s")

    assert ("all gradients together" in (figures["stepping_refused"] or "")) == is_refused


@pytest.mark.slow
def test_a_compiled_step_is_left_as_it_is(tmp_path: Path) -> None:
    """Other kernels break its graph, and steps of one parameter would not be compiled."""
    program = GPT.replace("\nfor", "\nstep = torch.compile(optimizer.step, backend='aot_eager')\nfor", 1)
    (tmp_path / "train.py").write_text(
        program.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "torch.optim.Adam(model.parameters())").replace(
            "    optimizer.step()", "    step()"
        )
    )
    done = gradinspect("plan", "train.py", "--fit", "1KiB", "--inexact", cwd=tmp_path)
    said = " ".join(done.stdout.split())

    assert "Tried: " in said
    assert said.count("fused=True") == said.count("as where it is compiled; nor fused=True, for the same reason.") == 1
    assert "register_post_accumulate_grad_hook" not in done.stdout


def test_a_device_that_is_not_here_is_not_measured(tmp_path: Path) -> None:
    """One sentence, exit 2."""
    (tmp_path / "train.py").write_text(GPT)
    done = gradinspect("plan", "train.py", "--fit", "1MiB", "--device", "cuda", "--try", cwd=tmp_path)

    assert done.returncode == 2
    assert "'--device cuda' is for a prediction, and --try measures the device of the program." in done.stderr


@pytest.mark.parametrize(
    ("line", "options", "sentence"),
    [
        ("if loss > 3: pass", (),
         "reads values, which fake tensors do not have. Give the number to answer with: --hint 1."),
        ("counts = torch.bincount((x[:, 0] > 0).long())", ("--hint", "1"),
         "makes a tensor whose size depends on values, which fake tensors do not have. Give it a fixed size, or "
         "measure the program as it is: fit --real."),
    ],
    ids=["value", "size"],
)  # fmt: skip
def test_what_needs_values_is_one_sentence(line: str, options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    """With what helps under `plan`, where the program cannot be run again: it has made a folder."""
    program = BATCHES.replace("    optimizer.zero_grad()", f"    {line}\n    optimizer.zero_grad()")
    (tmp_path / "train.py").write_text(
        program.replace("import torch\n", "import os, torch; assert not os.system('mkdir made')\n", 1)
    )
    done = gradinspect("plan", "train.py", "--fit", "1MiB", *options, cwd=tmp_path)

    assert done.returncode == 2
    asked = "" if options else "running 'train.py' with values, for what it reads\n"
    assert done.stderr == f"{asked}gradinspect: '{line}' (train.py:11) {sentence}\n"


@pytest.mark.slow
def test_a_batch_is_split(tmp_path: Path) -> None:
    """Gradients are added up: the optimizer steps once for all parts, and the peak is the allocator's."""
    status, figures = planned(BATCHES, tmp_path, "--fit", "300KiB", "--split", "batch_size", "--try")
    best = figures["plans"][0]

    assert status == 0
    assert figures["peak_bytes"] > 4 * 300 * 1024
    assert best["changes"][-1]["parts"] in (8, 16)
    assert "which changes the statistics of batch norms" in best["change"]
    assert best["measured_peak_bytes"] == pytest.approx(best["peak_bytes"], rel=0.001)  # a batch norm's scratch
    assert best["num_gradients"] == 0
    assert "train.py:12, loss.backward(): divide by" in best["edits"][-3]


@pytest.mark.slow
def test_a_variable_that_holds_memory_is_deleted(tmp_path: Path) -> None:
    """In a file that the program imports too; the file stays as it is, and a list that is read later is only named."""
    (tmp_path / "train.py").write_text(HOLDING[0])
    (tmp_path / "engine.py").write_text(HOLDING[1])
    python(tmp_path / "train.py", cwd=tmp_path)  # leaves a compiled engine.py
    plain = json.loads(gradinspect("fit", "train.py", "--format", "json", "--quiet-script", cwd=tmp_path).stdout)
    status, figures = planned(HOLDING[0], tmp_path, "--fit", str(plain["peak_bytes"] - 1), "--try")
    best = figures["plans"][0]

    assert status == 0
    assert best["change"] == "del out after engine.py:8"
    assert best["peak_bytes"] == best["measured_peak_bytes"] <= plain["peak_bytes"] - 512 * 900 * 4
    assert best["flops_ratio"] == 1
    assert best["bit_equal"] is True
    assert [(held["name"], held["num_storages"]) for held in figures["held"]] == [("kept", 1)]
    assert (tmp_path / "engine.py").read_text() == HOLDING[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train.py", "--fit", "0"), "'--fit 0' leaves no memory at all. Give a size such as 24GiB.\n"),
        (("train.py", "--fit", "1GiB", "--split", "batch"),
         "'train.py' does not say what 'batch' is. Write {batch} for its number in --input or in the script's "
         "arguments, or set batch to a number in the script.\n"),
        (("train.py", "--fit", "1GiB", "--split", "batch", "--", "{batch}"),
         "'--split batch' does not say how large 'batch' is. Write --split batch=64.\n"),
        (("train.py", "--fit", "1GiB", "--split", "steps=8"),
         "'--split steps=8': the script itself sets 'steps'. Write --split steps.\n"),
        (("train.py", "--fit", "1GiB", "--budget", "soon"),
         "'--budget soon' is not a time in seconds. Give one such as 60s.\n"),
        (("-", "--fit", "1GiB"),
         "'-' can be read only once, and 'plan' runs it several times. Give a file.\n"),
        (("train.py", "--fit", "1GiB"), "'train.py' never calls backward in this process, so there are no gradients to "
         "observe. Give a script that trains.\n"),
    ],
    ids=["no size", "no name", "no number", "two numbers", "no time", "stdin", "no backward"],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    """Exit 2, and no traceback."""
    (tmp_path / "train.py").write_text("import torch\nsteps = 4\n")
    done = gradinspect("plan", *words, cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: {sentence}"
