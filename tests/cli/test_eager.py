"""`--eager`: a program that compiles, as it is written."""

from pathlib import Path

import pytest
from runs import gradinspect

PROGRAM = """\
import os
import torch
from torch import nn

torch.manual_seed(0)
class Net(nn.Sequential):
    def forward(self, x):
        return super().forward(x)
net = Net(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
{compiled}
opt = torch.optim.SGD(net.parameters(), 0.1)
@{decorator}
def loss_of(x):
    return net(x).square().mean()
for _ in range(3):
    opt.zero_grad()
    loss_of(torch.ones(4, 8)).backward()
    opt.step()
"""
COMPILED = {
    "a model": ("net = torch.compile(net, backend='eager')", "(lambda f: f)"),
    "in place": ("net.compile(backend='aot_eager')", "(lambda f: f)"),
    "without effect": ("net[0].compile(backend='aot_eager')", "(lambda f: f)"),
    "a function": ("", "torch.compile(backend='aot_eager')"),
    "both, with options": ("net[0] = torch.compile(net[0], backend='eager', dynamic=True)", "torch.compile"),
}


SAVES = """
assert isinstance(net, torch._dynamo.eval_frame.OptimizedModule)
assert not hasattr(torch.compile(nn.Tanh(), disable=True), "_orig_mod")
print(*net.state_dict(), *net._orig_mod.state_dict())
"""


def written(folder: Path, kind: str | None) -> Path:
    """Write the program; None: without compiling anything."""
    compiled, decorator = ("", "(lambda f: f)") if kind is None else COMPILED[kind]
    script = folder / "train.py"
    script.write_text(PROGRAM.format(compiled=compiled, decorator=decorator))
    return script


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMPILED)
def test_the_graph_is_that_of_the_program_without_compile(tmp_path: Path, kind: str) -> None:
    """With its modules, and `check` looks at all of it."""
    plain = gradinspect("trace", written(tmp_path, None)).stdout
    eager = gradinspect("trace", written(tmp_path, kind), "--eager").stdout
    checked = gradinspect("check", tmp_path / "train.py", "--eager")

    assert eager == plain
    assert checked.stdout == "No problems found in 3 backward calls of train.py\n"


def test_the_note_names_it(tmp_path: Path) -> None:
    """Where a compiled part was not checked."""
    said = " ".join(gradinspect("check", written(tmp_path, "in place")).stdout.split())

    assert "Not checked: code under torch.compile, at train.py:14. --eager runs it as it is written." in said


@pytest.mark.slow
def test_the_module_has_the_wrapper_that_programs_unwrap(tmp_path: Path) -> None:
    """As those do that save what is inside; a module of which the program says that it is not compiled has none."""
    script = written(tmp_path, "a model")
    script.write_text(script.read_text() + SAVES)
    done = gradinspect("trace", script, "--eager", "--continue")

    inner = ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert done.stdout.splitlines()[0].split() == [*(f"_orig_mod.{name}" for name in inner), *inner]
    assert "OptimizedModule" not in done.stdout


@pytest.mark.slow
def test_a_backend_that_is_not_there_is_not_needed(tmp_path: Path) -> None:
    """As the error without --eager says."""
    script = written(tmp_path, "a model")
    script.write_text(script.read_text().replace("backend='eager'", "backend='of_another_machine'"))

    said = gradinspect("trace", script).stderr.splitlines()[-1]
    assert said == (
        "gradinspect: The script failed before any backward call: InvalidBackend. torch.compile has no backend "
        "'of_another_machine' here: install it. --eager leaves torch.compile out."
    )
    assert gradinspect("trace", script, "--eager").returncode == 0


@pytest.mark.slow
def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Not only the error of the backend that needs it."""
    script = written(tmp_path, "a model")
    compiler = "import torch._inductor.config as config\nconfig.cpp.cxx = (None, '/nowhere/g++')\n"
    script.write_text(compiler + script.read_text().replace(", backend='eager'", ""))
    done = gradinspect("trace", script, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"))

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "gradinspect: The script failed before any backward call: InductorError. inductor found no C++ compiler "
        "'/nowhere/g++': install one, such as g++, or name another in CXX. --eager leaves torch.compile out."
    )


@pytest.mark.slow
def test_the_environment_is_left_as_it_was(tmp_path: Path) -> None:
    """A program may set the variable of torch itself."""
    script = written(tmp_path, "a function")
    script.write_text(script.read_text() + "print(os.environ['TORCHDYNAMO_DISABLE'])\n")

    assert gradinspect("trace", script, "--eager", "--continue").stdout.splitlines()[0] == "1"
    assert gradinspect("trace", script, "--continue", TORCHDYNAMO_DISABLE="0").stdout.splitlines()[0] == "0"


def test_a_capture_file_has_run_already(tmp_path: Path) -> None:
    """One sentence."""
    gradinspect("export", written(tmp_path, None), "-o", tmp_path / "run.json")
    done = gradinspect("trace", "run.json", "--eager", cwd=tmp_path)

    assert done.returncode == 2
    assert "'--eager' is about running a program" in done.stderr


INSIDE = """
import torch
def step(w, x):
    return w - 0.1 * torch.func.grad(lambda w: (x @ w).square().mean())(w)
w = torch.ones(4)
for _ in range(2):
    w = torch.compile(step, backend="aot_eager")(w, torch.ones(3, 4))
"""


def test_gradients_that_compiled_code_computes_itself_are_not_missed_without_a_word(tmp_path: Path) -> None:
    """No backward is called there that could be seen."""
    script = tmp_path / "inside.py"
    script.write_text(INSIDE)
    done = gradinspect("trace", script)

    assert done.returncode == 2
    assert "compute gradients unseen: --eager runs it as it is written." in done.stderr
