"""A backward inside a function under torch.compile is recorded, and torch.compile does what it would do without us."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from runs import gradinspect, python, unmeasured
from turns import one_in

PROGRAM = """
import torch
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="eager")
def train_step(x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
losses = [train_step(torch.randn(2, 4)).item().hex() for _ in range(3)]
print(losses, sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"], flush=True)
print("frames that were looked at:", counters["frames"]["total"], flush=True)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose whole training step is compiled."""
    script = tmp_path_factory.mktemp("compiled") / "compiled_step.py"
    script.write_text(PROGRAM)
    return script


def test_a_compiled_step_is_seen(program: Path) -> None:
    """Its backward is recorded, with the line that calls it and the names of the parameters."""
    done = gradinspect("trace", program)

    assert done.returncode == 0, done.stderr
    assert "backward #1  compiled_step.py:10  loss.backward()" in done.stdout
    assert "◆ model.0.weight" in done.stdout


@pytest.mark.slow
def test_a_compiled_node_has_the_line_that_calls_compiled_code(tmp_path: Path) -> None:
    """In code that torch.compile has written, the call of a graph after a break has the line of another call."""
    script = tmp_path / "zeroed.py"
    cleared = PROGRAM.replace("    optimizer.zero_grad()\n", "").replace("(x):\n", "(x):\n    optimizer.zero_grad()\n")
    script.write_text(cleared.replace('"eager"', '"aot_eager"'))
    traced, overview = gradinspect("trace", script), gradinspect(script)

    assert re.search(r"CompiledFunctionBackward .* zeroed\.py:14\n", traced.stdout)
    assert "code under torch.compile, at zeroed.py:14." in " ".join(overview.stdout.split())
    assert "zeroed.py:9" not in traced.stdout.partition("torch.compile so far")[0] + overview.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", one_in(2, [["trace"], ["memory", "--iterations", "2"]]))
def test_a_compiled_step_is_as_without_us(program: Path, words: list[str]) -> None:
    """As many graphs and graph breaks, no warning, and losses that are bit-equal."""
    verb, *options = words
    plain = python(program, is_measured=False)  # TorchDynamo looks at frames of coverage too
    done = gradinspect(verb, program, *options, "--continue", is_measured=False)

    assert done.returncode == 0, done.stderr
    assert _untimed(done.stderr) == _untimed(plain.stderr)
    assert done.stdout.startswith(plain.stdout)
    assert "compiled_step.py:10" in done.stdout


@pytest.mark.slow
def test_no_frame_of_ours_is_looked_at(tmp_path: Path) -> None:
    """Neither within a context manager nor of a named tuple; the frames of contextlib are, as without us."""
    script = tmp_path / "compiled_step.py"
    script.write_text(PROGRAM.replace('"eager"', '"aot_eager"'))
    plain = python(script, is_measured=False)
    done = gradinspect("check", script, "--continue", is_measured=False)

    assert done.returncode == 0, done.stderr
    assert "frames that were looked at" in plain.stdout
    assert done.stdout.startswith(plain.stdout)


def _untimed(log: str) -> list[str]:
    """Remove time and process from the lines of torch's own log."""
    return [line.partition("]")[2] if line[1:5].isdigit() else line for line in log.splitlines()]


OPTIMIZER = """
import hashlib
import torch
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
def whole(x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
step = torch.compile(optimizer.step, backend="aot_eager")
compiled = torch.compile(whole, backend="eager")
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).square().mean().backward()
    step()
for _ in range(3):
    compiled(torch.randn(2, 4))
bits = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print(hashlib.sha256(bits).hexdigest(), flush=True)
print(sum(counters["graph_break"].values()), counters["stats"], len(counters["recompiles"]), flush=True)
"""
VERBS = (
    "check",
    "grads --steps 2",
    "fit --real",
    "trace",
    "check --steps 1",
    "grads",
    "memory --iterations 2",
    "saved",
)


@pytest.mark.slow
@pytest.mark.parametrize("words", one_in(8, VERBS))
def test_a_compiled_optimizer_is_as_without_us(words: str, tmp_path: Path) -> None:
    """Its step alone, and a whole training step: the same graphs and breaks, and parameters that are bit-equal."""
    script = tmp_path / "compiled_optimizer.py"
    script.write_text(OPTIMIZER)
    verb, *options = words.split()
    plain = python(script)
    done = gradinspect(verb, script, *options, "--continue")

    assert done.returncode == 0, done.stderr
    assert _untimed(done.stderr) == _untimed(plain.stderr)
    assert plain.stdout in done.stdout
    if words == "check":
        assert "Not checked: code under torch.compile, at compiled_optimizer.py:17,\n" in done.stdout
        assert "No problems found" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", one_in(4, ("overview", "grads", "check --steps 1", "trace")))
def test_what_is_compiled_after_we_have_seen_enough_is_as_without_us(words: str, tmp_path: Path) -> None:
    """Steps of an optimizer in eager come first: nothing of ours is left where the compiled one begins."""
    script = tmp_path / "compiled_late.py"
    eager = (
        OPTIMIZER.partition("for _ in range(4):")[2]
        .partition("for _ in range(3):")[0]
        .replace("step()", "whole_step()")
    )
    script.write_text(
        OPTIMIZER.replace(
            "for _ in range(4):", f"whole_step = optimizer.step\nfor _ in range(4):{eager}for _ in range(4):", 1
        )
    )
    verb, *options = words.split()
    plain = python(script)
    done = gradinspect(verb, script, *options, "--continue")

    assert done.returncode == 0, done.stderr
    assert plain.stdout in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", one_in(2, ["fit", "fit --real"]))
def test_a_step_ends_where_a_compiled_optimizer_has_stepped(words: str, tmp_path: Path) -> None:
    """Its state is optimizer state, the program is not watched to its end, and what was not compiled is said."""
    script = tmp_path / "adam.py"
    script.write_text(PROGRAM.replace("SGD", "Adam").replace("range(3)", "range(30)") + "print('the end')\n")
    verb, *options = words.split()
    done = gradinspect(verb, script, *options)
    said = " ".join(done.stdout.split())

    assert done.returncode == 0, done.stderr
    assert ("torch.compile compiles nothing on fake tensors" in said) == (not options)
    assert "An optimizer steps in code under torch.compile: such a step ends where that code returns" in said
    assert re.findall(r"step (\d): peak", said) == ["1", "2"]
    assert "the end" not in said


@pytest.mark.slow
def test_plan_says_why_a_compiled_optimizer_steps_where_it_does(tmp_path: Path) -> None:
    """Its own update is not what takes the parameters away."""
    script = tmp_path / "adam.py"
    script.write_text(PROGRAM.replace("SGD", "Adam"))
    said = " ".join(gradinspect("plan", script, "--fit", "64").stdout.split())

    assert "steps inside backward: no step of an optimizer was seen, as where it is compiled; nor fused=True" in said


@pytest.mark.slow
def test_what_a_compiled_optimizer_keeps_is_its_state(tmp_path: Path) -> None:
    """As much as the same program has in eager."""
    script = tmp_path / "adam.py"
    script.write_text(PROGRAM.replace("SGD", "Adam"))
    compiled, eager = (gradinspect("fit", script, "--steps", "1", *options) for options in ([], ["--eager"]))
    ends = [re.findall(r"step 1: .* (\d+) B at its end", done.stdout) for done in (compiled, eager)]

    assert ends[0] == ends[1] != []


NO_MODULE = """
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
torch.manual_seed(0)
class Up(torch.nn.Linear):
    def forward(self, x):  # the program's own: `compile()` of a module of torch.nn compiles nothing
        return super().forward(x)
model = torch.nn.Sequential(Up(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())
as_code = aot_autograd(fw_compiler=lambda module, _: make_boxed_func(module.forward))  # runs no module, as inductor
net = model
def step(x):
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
COMPILED
for _ in range(4):
    step(torch.randn(256, 64))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", one_in(2, ["as_code", "'aot_eager'"]))
@pytest.mark.parametrize(
    "compiled", one_in(3, ["net = torch.compile(net{})", "model[0].compile({})", "step = torch.compile(step{})"])
)
def test_forward_in_compiled_code_is_that_of_its_own_step(compiled: str, backend: str, tmp_path: Path) -> None:
    """Nothing in it may be seen, so that a step ended with what the next one saves for backward."""
    script = tmp_path / "no_module.py"
    ends = []
    for line in ("", compiled.format(f", backend={backend}").replace("(, ", "(")):
        script.write_text(NO_MODULE.replace("COMPILED", line))
        done = gradinspect("fit", script, "--real")
        assert done.returncode == 0, done.stderr
        assert "GraphModule" not in done.stdout
        assert re.search(r"\|f[orwad]*\|", done.stdout.replace(" ", ""))
        ends.append(re.findall(r"step \d: .* (\S+ \S+) at its end", done.stdout))

    assert ends[0] == ends[1]
    assert len(ends[0]) == 2


BLOCKS = """
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Sequential):
    def forward(self, x):  # the program's own: `compile()` of a module of torch.nn compiles nothing
        return super().forward(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(nn.Linear(64, 64), nn.GELU()) for _ in range(3))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
model = Net()
optimizer = torch.optim.SGD(model.parameters())
net = model
COMPILED
step = torch.compile(optimizer.step, backend="aot_eager")
for _ in range(3):
    net(torch.randn(256, 64)).sum().backward()
    step()
    optimizer.zero_grad()
"""
COMPILE = {
    "the model": "net = torch.compile(model, backend='aot_eager')",
    "each block": "for block in model.blocks: block.compile(backend='aot_eager')",
    "a function": "net = torch.compile(lambda x: model(x), backend='aot_eager')",
}


def _unfolded(label: str) -> list[str]:
    """List the modules of a row: which ones are folded depends on their classes, which compiled code does not tell."""
    ranges = [re.fullmatch(r"(\d+)-(\d+)", part) for part in label.split(".")]
    numbers = [
        [part] if found is None else [str(one) for one in range(int(found[1]), int(found[2]) + 1)]
        for part, found in zip(label.split("."), ranges, strict=True)
    ]
    return list(map(".".join, product(*numbers)))


@pytest.mark.slow
@pytest.mark.parametrize("compiled", COMPILE)
def test_what_compiled_code_keeps_belongs_to_the_module_that_made_it(compiled: str, tmp_path: Path) -> None:
    """To the one that its graph names, as in eager; of what is not kept, only the compiled module is known."""
    kept = []
    for line in (COMPILE[compiled], ""):
        script = tmp_path / "blocks.py"
        script.write_text(BLOCKS.replace("COMPILED", line))
        done = gradinspect("fit", script, "--real", "--where", "kind='saved'", "--format", "json")
        assert done.returncode == 0, done.stderr
        found = Counter[str]()
        for group in json.loads(done.stdout)["groups"]:
            for label in _unfolded(group["label"]):
                # What a compiled block returns is kept by the next one: which of its modules made it is not known.
                name = label.partition(".")[0] if compiled == "each block" else label
                found[name] += group["num_bytes"] // group["times"]
        kept.append(found)
    script.write_text(BLOCKS.replace("COMPILED", COMPILE[compiled]))
    modules = gradinspect("fit", script, "--real").stdout
    rest = {"the model": "(model itself)", "each block": "blocks", "a function": "(compiled functions)"}[compiled]

    assert kept[0] == kept[1] != Counter()
    assert rest in modules
    assert "<lambda>" not in modules


EVERYTHING = """
import hashlib
import torch
from torch._dynamo.utils import counters, guard_failures
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    def forward(self, x):
        x = self.layers[:2](x)
        torch._dynamo.graph_break()
        return self.layers[2](x)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
compiled_model = torch.compile(model, backend="BACKEND")
step = torch.compile(optimizer.step, backend="BACKEND")
def partly(x):
    optimizer.zero_grad()
    loss = compiled_model(x).square().mean()
    loss.backward()
    step()
    return loss
@torch.compile(backend="BACKEND")
def whole(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for size in (2, 2, 3, 3):
    print(partly(torch.randn(size, 4)).item().hex())
for _ in range(3):
    print(whole(torch.randn(2, 4)).item().hex())
bits = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print(hashlib.sha256(bits).hexdigest())
for name in ("graph_break", "stats", "frames", "aot_autograd", "inductor"):
    print(name, sorted((str(what).partition(chr(10))[0], number) for what, number in counters[name].items()))
own = [(code.co_name, len(why)) for code, why in guard_failures.items() if code.co_filename == __file__]
print("recompiled", sorted(own), flush=True)
"""
EVERY_VERB = (
    "check", "check --steps 1", "check --gradcheck", "overview", "trace", "trace --create-graph", "trace --backward 2",
    "saved", "find bytes>0", "memory", "memory --by flops", "memory --iterations 2", "export -o graph.svg",
    "export --values -o graph.json", "grads", "grads --steps 2", "grads --timeline times.json",
    "step --report steps.md", "fit --real",
)  # fmt: skip
BACKENDS = ("aot_eager", "eager", "inductor")


@pytest.mark.slow
@pytest.mark.parametrize("words", one_in(len(EVERY_VERB), EVERY_VERB))
@pytest.mark.parametrize("backend", one_in(len(BACKENDS), BACKENDS))
def test_graphs_breaks_and_bits_are_as_without_us(
    backend: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model, a step and a whole training step, which are compiled; torch's own counters are the witness.

    Each run has caches of its own: the second would find what the first has compiled. Inductor has none, since the keys
    of what it compiles differ from run to run. Without coverage, whose own frames Dynamo looks at.
    """
    if backend == "inductor":
        monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
        if shutil.which("g++") is None:
            pytest.skip("inductor needs a compiler")
    script = tmp_path / "everything.py"
    script.write_text(EVERYTHING.replace("BACKEND", backend))
    verb, *options = words.split()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "plain"))
    plain = python(script, is_measured=False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "ours"))
    done = gradinspect(verb, script, *options, "--continue", cwd=tmp_path, is_measured=False)

    assert done.returncode == 0, done.stderr
    ours = ("Wrote ", "graph.svg: ")  # what is said of files
    assert [line for line in _untimed(done.stderr) if not line.startswith(ours)] == _untimed(plain.stderr)
    assert "unique_graphs" in plain.stdout
    assert plain.stdout in done.stdout


CACHED = """
import torch
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
net = torch.compile(model)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(2, 4)).square().mean().backward()
    optimizer.step()
for name in ("aot_autograd", "inductor"):
    print("counted:", name, sorted(counters[name].items()), flush=True)
"""


def _counted(script: Path, folder: Path, words: Sequence[str] = ()) -> list[str]:
    """Return what a run has counted, with a verb or plain, with the cache in a folder, where it writes its files too.

    In a process of its own: what a forked one has imported before is part of the keys.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "cache"))
        folder.mkdir(exist_ok=True)
        if words:
            again = [*words[1:], "--continue"]
            run = gradinspect(words[0], script, *again, cwd=folder, is_new=True, is_measured=False)
        else:
            command = [sys.executable, str(script)]
            run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=unmeasured())
    is_refused = "--create-graph" in words and "donated buffers" in run.stderr  # by torch, once the program has ended
    assert run.returncode == 0 or is_refused, run.stderr
    return [line for line in run.stdout.splitlines() if line.startswith("counted:")]


class _Plain(NamedTuple):
    """Two runs of a program without us, one after the other."""

    script: Path
    folder: Path
    cold: list[str]
    warm: list[str]


@pytest.fixture(scope="module")
def plain_runs(tmp_path_factory: pytest.TempPathFactory) -> _Plain:
    """Run the program without us, twice."""
    folder = tmp_path_factory.mktemp("plain")
    script = folder / "cached.py"
    script.write_text(CACHED)
    cold, warm = (_counted(script, folder / "plain") for _ in range(2))
    return _Plain(script, folder / "plain", cold, warm)


@pytest.mark.slow  # a minute of the compiler
@pytest.mark.parametrize("words", one_in(len(EVERY_VERB), EVERY_VERB))
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler")
def test_the_caches_of_torch_are_hit_and_missed_as_without_us(words: str, tmp_path: Path, plain_runs: _Plain) -> None:
    """Empty, full of what a plain run has compiled, and full of what the program has compiled under a verb."""
    script, plain, cold, warm = plain_runs
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    shutil.copytree(plain, theirs)

    assert "autograd_cache_miss" in cold[0]
    assert "fxgraph_cache_hit" in warm[1]
    assert _counted(script, theirs, words.split()) == warm
    assert _counted(script, ours, words.split()) == cold
    assert _counted(script, ours) == warm


@pytest.mark.slow
def test_an_optimizer_that_never_steps_is_found_beside_a_compiled_model(tmp_path: Path) -> None:
    """Compiled code that changes no parameter hides no step."""
    script = tmp_path / "no_step.py"
    script.write_text(
        OPTIMIZER.partition("step = ")[0] + "compiled = torch.compile(model, backend='eager')\n"
        "for _ in range(4):\n    optimizer.zero_grad()\n    compiled(torch.randn(2, 4)).square().mean().backward()\n"
    )
    done = gradinspect("check", script)

    assert done.returncode == 1
    assert "GI365" in done.stdout


SIZES = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="aot_eager")
def loss_of(x):
    hidden = model[0](x)
    torch._dynamo.graph_break()
    return model[1](hidden).square().mean()
for size in (4, 5, 6):
    optimizer.zero_grad()
    loss_of(torch.randn(size, 4)).backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_tensors_of_symbolic_sizes_that_torch_keeps_are_no_trouble(tmp_path: Path) -> None:
    """They are found among the tensors that are alive, with a graph of their own."""
    script = tmp_path / "sizes.py"
    script.write_text(SIZES)
    done = gradinspect("check", script)

    assert done.returncode == 0, done.stderr
    assert "Not looked at" not in done.stdout


CHECKPOINTED = """
import torch
from torch.utils.checkpoint import checkpoint
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
@torch.compile(backend="aot_eager")
def loss_of(x):
    return checkpoint(model, x, use_reentrant=False).square().mean()
for _ in range(3):
    optimizer.zero_grad()
    loss = loss_of(torch.randn(2, 4))
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(sum(counters["graph_break"].values()), counters["stats"], counters["aot_autograd"], flush=True)
"""


@pytest.mark.slow
def test_a_checkpoint_inside_a_compiled_function_is_traced_as_without_us(tmp_path: Path) -> None:
    """Its block runs on fake tensors while it is traced, where nothing of ours may compute with real ones."""
    script = tmp_path / "compiled_checkpoint.py"
    script.write_text(CHECKPOINTED)
    plain = python(script)
    done = gradinspect("check", script, "--continue")

    assert done.returncode == 0, done.stderr
    assert plain.stdout in done.stdout


PARTLY = """
import logging
import torch
torch._logging.set_logs(dynamo=logging.INFO)
torch.manual_seed(0)
torch._dynamo.config.compiled_autograd = COMPILED_AUTOGRAD
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
@torch.compile(backend="aot_eager")
def gradients(x):
    loss = model(x).square().mean()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.zero_grad()
    print(gradients(torch.randn(2, 4)).item().hex())
    optimizer.step()
print([parameter.sum().item().hex() for parameter in model.parameters()], flush=True)
"""


BETWEEN = (
    "check",
    "grads",
    "grads --steps 2",
    "export --values -o graph.json",
    "trace",
    "memory --iterations 2",
    "fit --real",
)


@pytest.mark.slow
@pytest.mark.parametrize("words", one_in(len(BETWEEN), BETWEEN))
@pytest.mark.parametrize("is_compiled", one_in(2, (False, True)))
def test_nothing_of_ours_is_compiled_between_compiled_parts(tmp_path: Path, *, is_compiled: bool, words: str) -> None:
    """torch.compile looks at each frame that runs there; it traces those of the program, and no other.

    With compiled autograd, it traces the hooks of nodes too: there are none of ours.
    """
    script = tmp_path / "compiled_gradients.py"
    script.write_text(PARTLY.replace("COMPILED_AUTOGRAD", str(is_compiled)))
    verb, *options = words.split()
    plain = python(script)
    done = gradinspect(verb, script, *options, "--continue", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert plain.stdout in done.stdout
    assert _traced(plain.stderr) == _traced(done.stderr)
    assert _traced(plain.stderr)


@pytest.mark.slow
def test_gradients_under_compiled_autograd_are_read_from_the_parameters(tmp_path: Path) -> None:
    """They are those of the same program without it; what is added to a gradient that was there is not known."""
    script, eager = tmp_path / "compiled_autograd.py", tmp_path / "eager.py"
    script.write_text(ENABLED)
    eager.write_text(ENABLED.replace("torch._dynamo.compiled_autograd._enable(compiler)", "nullcontext()"))
    first, plain = gradinspect("grads", script, "--format", "csv"), gradinspect("grads", eager, "--format", "csv")
    second = gradinspect("grads", script, "--backward", "2")
    checked = gradinspect("check", script)

    assert first.returncode == second.returncode == checked.returncode == 0
    rows = [done.stdout.replace("eager.py", script.name).splitlines() for done in (first, plain)]
    assert {line for line in rows[0] if "weight" in line or "bias" in line} <= set(rows[1])
    assert "4 of 11 nodes measured" in second.stdout
    assert len(re.findall("×2 +unknown", second.stdout)) == 2
    assert "Gradients at 4 nodes were not measured: compiled autograd has added to a .grad" in second.stdout
    assert "measured at parameters alone" in checked.stdout
    for words in (["step", "--report", "steps.md"], ["grads", "--timeline", "times.json"]):
        refused = gradinspect(words[0], script, *words[1:], cwd=tmp_path)
        assert refused.returncode != 0
        assert "Compiled autograd runs this backward call" in refused.stderr


ENABLED = """
from contextlib import nullcontext
import torch, torch._dynamo.compiled_autograd
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
compiler = torch.compile(backend="eager")
for _ in range(2):
    optimizer.zero_grad()
    losses = [model(torch.randn(2, 4)).square().mean() for _ in range(2)]
    with torch._dynamo.compiled_autograd._enable(compiler):
        for loss in losses:
            loss.backward()
    optimizer.step()
"""


def _traced(log: str) -> list[str]:
    """List the functions that torch.compile traced, apart from what it does with torch's own."""
    found = (line.partition("start tracing ")[2] for line in log.splitlines())
    return sorted(line for line in found if line and "site-packages/torch" not in line)
