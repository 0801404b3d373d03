"""A program runs as under plain python, and the requested moment is recorded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from runs import gradinspect, python

NOTICE = """
import atexit, json, multiprocessing, os, pickle, sys, warnings
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return float(index * index)

class Point:
    def __init__(self, x): self.x = x

def double(value): return 2 * value

def seen():
    return {
        "name": __name__, "file": __file__, "spec": repr(__spec__), "argv": sys.argv, "path0": sys.path[0],
        "cwd": os.getcwd(), "started": sys.orig_argv[1:], "main_is_me": sys.modules["__main__"].__dict__ is globals(),
        "pickled": pickle.loads(pickle.dumps(Point(3))).x, "filters": len(warnings.filters),
    }

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.map(double, [1, 2])
    loaded = [batch.tolist() for batch in DataLoader(Squares(), num_workers=2)]
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 3)
    optimizer = torch.optim.Adam(layer.parameters())
    for _ in range(3):
        loss = layer(torch.randn(5, 3)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    atexit.register(lambda: print(json.dumps({"at_exit": pickle.loads(pickle.dumps(Point(4))).x})))
    bits = [float(p.detach().sum()).hex() for p in layer.parameters()]
    print(json.dumps({**seen(), "spawned": spawned, "loaded": loaded, "loss": loss.item().hex(), "bits": bits}))
    sys.exit(0)
"""


@pytest.mark.slow
def test_the_script_does_not_notice(tmp_path: Path) -> None:
    """What a program can see of itself, its workers and its numbers are those of a plain run."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(NOTICE)
    arguments = ["--lr", "0.1", "--", "rest"]
    command = [sys.executable, "project/train.py", *arguments]
    plain = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True)
    traced = gradinspect("trace", "project/train.py", "--continue", "--", *arguments, cwd=tmp_path, is_new=True)
    expected = [json.loads(line) for line in plain.stdout.splitlines()]
    actual = [json.loads(line) for line in traced.stdout.splitlines() if line.startswith("{")]

    assert traced.stderr == plain.stderr == ""
    assert expected == actual
    assert "backward #1  train.py:32  loss.backward()" in traced.stdout


STEPS = """
import os, sys
import torch
x = torch.ones(2, requires_grad=True)
def once(power):
    y = x ** power
    (y.sum()).backward()
once(2)
once(3)
(gradient,) = torch.autograd.grad((x ** 4).sum(), x, create_graph=True)
left = {"a": gradient * 2, "b": [x * 5]}
if "leave" in sys.argv:
    sys.stdout.flush()
    os._exit(7)
if "fail" in sys.argv:
    raise ValueError("mine")
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script with three engine calls and two tensors left at its end."""
    script = tmp_path_factory.mktemp("steps") / "steps.py"
    script.write_text(STEPS)
    return script


def test_a_later_backward_can_be_chosen(steps: Path) -> None:
    """Calls are numbered in their own kind: `--backward 2` and `--grad 1`."""
    second = gradinspect("trace", steps, "--backward", "2")
    grad = gradinspect("trace", steps, "--grad", "1")

    assert second.stdout.startswith("backward #2  steps.py:7")
    assert grad.stdout.startswith("autograd.grad #1  steps.py:10")


def test_the_end_of_a_script_is_the_tensors_it_leaves(steps: Path) -> None:
    """Only tensors from which no other was computed count."""
    done = gradinspect("trace", steps, "--at", "end")

    assert done.stdout.startswith("end of steps.py\n2 roots")
    assert "left['a']" in done.stdout
    assert "left['b'][0]" in done.stdout


def test_a_root_can_be_picked_by_name(steps: Path) -> None:
    """Even a tensor that backward was not called on."""
    done = gradinspect("trace", steps, "--root", "y")
    missing = gradinspect("trace", steps, "--root", "yy")

    assert "root y: #0 PowBackward0" in done.stdout
    assert missing.returncode == 2
    assert "The root 'yy' is not a visible variable. Tensors with a graph here: y, x" in missing.stderr


def test_a_backward_that_never_comes_is_said(steps: Path) -> None:
    """The error counts the calls that were made."""
    done = gradinspect("trace", steps, "--backward", "9")

    assert done.returncode == 2
    assert "called backward 2 times and autograd.grad 1 time, so backward #9 was not reached" in done.stderr


def test_os_exit_does_not_lose_the_report(steps: Path) -> None:
    """A program that continues and leaves by os._exit is still reported on, and keeps its exit code."""
    done = gradinspect("trace", steps, "--continue", "--", "leave")

    assert done.returncode == 7
    assert "backward #1  steps.py:7" in done.stdout


def test_a_script_that_fails_after_the_capture_is_reported_and_exits_3(steps: Path) -> None:
    """What was recorded is shown, and the failure is not hidden."""
    done = gradinspect("trace", steps, "--continue", "--", "fail")

    assert done.returncode == 3
    assert "backward #1  steps.py:7" in done.stdout
    assert "ValueError: mine" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "gradinspect: The script failed with ValueError after 2 backward calls and 1 autograd.grad call."
    )


def test_an_interrupted_script_exits_as_python_does(tmp_path: Path) -> None:
    """Ctrl-C before the capture: the script's traceback, and the exit code of an interrupt."""
    script = tmp_path / "slow.py"
    script.write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job ignores it
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"
    )
    done = gradinspect("trace", script)

    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "gradinspect/" not in done.stderr


@pytest.mark.slow
def test_a_failing_script_shows_its_own_frames_only(tmp_path: Path) -> None:
    """The traceback is the one that python prints."""
    script = tmp_path / "broken.py"
    script.write_text("import torch\nx = torch.ones(2)\ndef f():\n    return x @ torch.ones(3)\nf()\n")
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    done = gradinspect("trace", script)
    *traceback, sentence = done.stderr.splitlines()

    assert done.returncode == 3
    assert plain.stderr.splitlines() == traceback
    assert sentence == "gradinspect: The script failed before any backward call: RuntimeError."


@pytest.mark.parametrize(
    ("body", "code", "sentence"),
    [
        (
            "with torch.no_grad():\n    y = torch.ones(2, requires_grad=True) * 2\n",
            2,
            "none of its global variables has a graph",
        ),
        ("def f(:\n", 3, "The script failed before any backward call: SyntaxError."),
        ("import sys\nsys.exit(4)\n", 3, "The script ended with exit code 4 before any backward call"),
        ("torch.ones(1).sum().backward()\n", 3, "RuntimeError"),
    ],
)
def test_nothing_to_record_is_one_sentence(body: str, code: int, sentence: str, tmp_path: Path) -> None:
    """Each error says what happened."""
    script = tmp_path / "script.py"
    script.write_text("import torch\n" + body)
    done = gradinspect("trace", script)

    assert done.returncode == code
    assert sentence in done.stderr.splitlines()[-1]
    assert "gradinspect/" not in done.stderr


def test_callables_are_called_with_made_up_inputs(tmp_path: Path) -> None:
    """Their output is recorded, or the backward inside them; parameters are named even if the model is gone."""
    (tmp_path / "net.py").write_text(
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        "def step(x, mask=None):\n    loss = (w * x * mask).sum()\n    loss.backward()\n    return loss\n"
    )
    step = gradinspect("trace", "net.py:step", "--input", "2x3", "--input", "mask=3:bool", cwd=tmp_path)
    output = gradinspect("trace", "net:step", "--input", "2x3", "--input", "mask=3:bool", "--at", "call", cwd=tmp_path)
    layer = gradinspect("trace", "torch.nn:Linear(3, 4)", "--input", "2x3", cwd=tmp_path)

    assert "backward #1  net.py:5  loss.backward()" in step.stdout
    assert output.stdout.startswith("call of net:step")
    assert "◆ weight  f32[4, 3]" in layer.stdout


COMPILED = """
import warnings
import torch
from torch._dynamo.utils import counters
warnings.simplefilter("error")
inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
model = torch.compile(inner, backend="aot_eager")
for size in (2, 2, 3):
    loss = model(torch.randn(size, 4)).sum()
    loss.backward()
print("counted", dict(counters["stats"]), dict(counters["graph_break"]), counters["frames"]["ok"])
"""


@pytest.mark.slow
def test_a_compiled_program_compiles_what_it_compiled_before(tmp_path: Path) -> None:
    """Recording causes no graph break, no recompile and no warning."""
    script = tmp_path / "compiled.py"
    script.write_text(COMPILED)
    plain = python(script)
    traced = gradinspect("trace", script, "--continue")

    assert traced.stderr == plain.stderr == ""
    assert plain.stdout in traced.stdout
    assert "CompiledFunctionBackward" in traced.stdout


NESTED = """
import torch
from torch.utils.checkpoint import checkpoint
layer = torch.nn.Linear(3, 3)
x = torch.ones(2, 3, requires_grad=True)
checkpoint(layer, x, use_reentrant=True).sum().backward()
@torch.jit.script
def scripted(x):
    y = (x * x).sum()
    gradient = torch.autograd.grad([y], [x])[0]
    return gradient
print(scripted(torch.ones(2, requires_grad=True)))
print(torch.func.grad(lambda t: (t ** 2).sum())(torch.ones(2)))
optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=2)
def closure():
    optimizer.zero_grad()
    loss = layer(x.detach()).square().sum()
    loss.backward()
    return loss
optimizer.step(closure)
print("done")
"""


@pytest.mark.slow
def test_engine_calls_of_all_kinds_still_work(tmp_path: Path) -> None:
    """Reentrant checkpoint counts once; scripted code, torch.func and LBFGS run as before."""
    script = tmp_path / "nested.py"
    script.write_text(NESTED)
    plain = python(script)
    first = gradinspect("trace", script, "--continue")
    second = gradinspect("trace", script, "--backward", "2", "--continue")

    assert plain.stdout.endswith("done\n")
    assert first.stdout.startswith(plain.stdout)
    assert "backward #1  nested.py:6" in first.stdout
    assert "#2  nested.py" in second.stdout
    assert "nested.py:6" not in second.stdout.splitlines()[3]


ROOMS = {
    "another folder": "import os, tempfile; os.chdir(tempfile.mkdtemp())",
    "a folder that is gone": "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
    "no path": "import sys; sys.path.clear()",
    "stdout closed": "import sys; sys.stdout.close()",
    "stdout replaced": "import io, sys; sys.stdout = io.StringIO()",
    "no stdout": "import sys; sys.stdout = None",
    "descriptor closed": "import os; os.close(1)",
    "numbers rounded": "torch.set_printoptions(precision=1); torch.set_default_dtype(torch.float64)",
}


@pytest.mark.slow
@pytest.mark.parametrize("change", ROOMS.values(), ids=ROOMS)
@pytest.mark.parametrize("option", ["--continue", "--quiet-script"])
def test_what_a_script_does_to_its_process_is_its_own_affair(change: str, option: str, tmp_path: Path) -> None:
    """The report goes where the user asked for it, and the script finds its process unchanged."""
    (tmp_path / "move.py").write_text(
        "import torch\nx = torch.ones(3, requires_grad=True, dtype=torch.float32)\n"
        f"{change}\n(x * x).sum().backward()\n"
        "import atexit, os, sys\nbefore = (sys.stdout, list(sys.path))\n"
        "def check():\n    assert (sys.stdout, list(sys.path)) == before, 'changed'\natexit.register(check)\n"
    )
    done = gradinspect("trace", "move.py", option, "-o", "move.json", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "Wrote move.json\n")
    assert "MulBackward0  f32[3]" in done.stdout
    assert (tmp_path / "move.json").is_file()


def test_a_forked_child_ends_as_under_python(tmp_path: Path) -> None:
    """It neither reports nor swallows its own error."""
    (tmp_path / "fork.py").write_text(
        "import os, sys, torch\nx = torch.ones(3, requires_grad=True)\nif os.fork() == 0:\n"
        "    x.sum().backward()\n    sys.exit(5)\n_, status = os.wait()\nprint('child', status >> 8)\n"
        "(x * x).sum().backward()\n"
    )
    done = gradinspect("trace", "fork.py", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("child 5\nbackward #1  fork.py:8")
    assert done.stdout.count("backward #1") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("torch.ones(3).sum().backward()", " The line that cut the graph is found by: gradinspect check train.py"),
        ("torch.nn.functional.layer_norm(torch.ones(2, 3), (4,))", ""),
        ("OWN\nwith Mode(): torch.nn.functional.layer_norm(torch.ones(2, 3), (4,))", ""),
        ("def f(): torch.nn.functional.layer_norm(torch.ones(2, 3), (4,))\nLINELESS\nf()", ""),
    ],
)
def test_a_traceback_is_that_of_a_plain_run(body: str, hint: str, tmp_path: Path) -> None:
    """No frame of ours, and none that torch has because of us; what to try comes after it."""
    mode = (
        "class Mode(torch.overrides.TorchFunctionMode):\n"
        "    def __torch_function__(self, func, types, args=(), kwargs=None): return func(*args, **(kwargs or {}))"
    )
    lineless = "f.__code__ = f.__code__.replace(co_linetable=bytes([0xFF] * (len(f.__code__.co_code) // 16 + 1)))"
    script = tmp_path / "train.py"
    script.write_text(f"import torch\n{body.replace('OWN', mode).replace('LINELESS', lineless)}\n")
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=300)
    traced = gradinspect("trace", "train.py", cwd=tmp_path)
    *lines, sentence = traced.stderr.splitlines()

    assert lines == plain.stderr.splitlines()
    assert sentence.startswith("gradinspect: The script failed")
    assert sentence.endswith(hint)


@pytest.mark.parametrize("verb", ["trace", "check"])
def test_a_parser_that_was_given_nothing(verb: str, tmp_path: Path) -> None:
    """The script's parser ends it with 2; where its arguments go is said, also by what needs a backward call."""
    (tmp_path / "train.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', required=True)\np.parse_args()\n"
    )
    done = gradinspect(verb, "train.py", cwd=tmp_path)

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "gradinspect: The script ended with exit code 2 before any backward call. Its own arguments follow --: "
        "train.py -- ARGUMENTS."
    )


def test_a_loss_that_is_not_finite_is_said(tmp_path: Path) -> None:
    """The graph is right, and useless for learning."""
    (tmp_path / "train.py").write_text(
        "import torch\nw = torch.zeros(3, requires_grad=True)\n(w / w).sum().backward()\n"
    )

    assert "warning: The loss is nan. Where it comes from is found by: gradinspect check\n" in (
        gradinspect("trace", "train.py", cwd=tmp_path).stdout
    )


SWAPS = """
import torch
from torch.func import vjp
torch.__future__.set_swap_module_params_on_conversion(True)
x = torch.randn(3)
print(vjp(lambda x: (x, x), x)[1]((torch.ones(3), torch.ones(3))))
model = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    model.double().float()
print("swapped")
"""


@pytest.mark.parametrize("verb", ["trace", "check", "grads", "memory"])
def test_parameters_may_be_swapped_and_inputs_returned(verb: str, tmp_path: Path) -> None:
    """Torch refuses to swap a tensor with a weak reference; an input that a transform returns has no node to find."""
    (tmp_path / "train.py").write_text(SWAPS)
    done = gradinspect(verb, "train.py", "--continue", cwd=tmp_path)

    assert "swapped\n" in done.stdout
    assert "Error" not in done.stderr
    assert done.returncode in {0, 1}


@pytest.mark.parametrize("name", ["io.open", "os.stat", "os.path.expanduser", "importlib.util.find_spec"])
def test_a_step_that_may_read_no_files_has_its_argument_names(name: str, tmp_path: Path) -> None:
    """The catalog was read before the program ran."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nfrom unittest import mock\n"
        "w = torch.ones(3, requires_grad=True)\n"
        f"with mock.patch({name!r}, side_effect=AssertionError) as asked:\n"
        "    w.atan2(w.exp()).sum().backward()\n"
        "print('asked', asked.call_count)\n"
    )

    done = gradinspect("trace", script, "--continue")

    assert done.stdout.startswith("asked 0\n")
    assert "self: ◆ w" in done.stdout
    assert "catalog" not in done.stdout + done.stderr
