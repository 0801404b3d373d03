"""The first backward() is shown; an autograd.grad() before it only where the program has no backward()."""

import os
from pathlib import Path

import pytest
from runs import gradinspect, python

PENALTY = """
import torch
from torch import nn
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
def penalty(real, fake):
    share = torch.rand(real.size(0), 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_(True)
    scores = critic(mixed)
    (slope,) = torch.autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()
for _ in range(3):
    real, fake = torch.randn(4, 8), torch.randn(4, 8)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
    critic.zero_grad()
    loss.backward()
print("end of program")
"""

RESIDUAL = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
x = torch.rand(10, 1, requires_grad=True)
t = torch.rand(10, 1, requires_grad=True)
def slope(y, of):
    return torch.autograd.grad(y, of, torch.ones_like(y), create_graph=True)[0]
for _ in range(2):
    u = net(torch.cat([x, t], 1))
    loss = (slope(u, t) - slope(slope(u, x), x)).square().mean()
    loss.backward()
"""

INNER = """
import torch
w = torch.randn(3, 1, requires_grad=True)
x, y = torch.randn(8, 3), torch.randn(8, 1)
fast = w
for _ in range(5):
    (step,) = torch.autograd.grad((x @ fast - y).square().mean(), fast, create_graph=True)
    fast = fast - 0.1 * step
outer = (x @ fast - y).square().mean()
outer.backward()
"""

SAMPLER = """
import sys
import torch
q = torch.ones(3)
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
    at = q.detach().requires_grad_()
    energy = (at ** 2).sum() + torch.cos(at).sum()
    (force,) = torch.autograd.grad(energy, at)
    q = q - 0.1 * force
left = at * 2
print("end of program")
if "exit" in sys.argv:
    sys.exit(5)
if "fail" in sys.argv:
    raise ValueError("mine")
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs whose first engine call is an autograd.grad()."""
    folder = tmp_path_factory.mktemp("programs")
    texts = {"penalty": PENALTY, "residual": RESIDUAL, "inner": INNER, "sampler": SAMPLER}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("name", "place", "num_grads"),
    [("penalty", "penalty.py:16", "1"), ("residual", "residual.py:12", "3"), ("inner", "inner.py:10", "5")],
)
def test_the_first_backward_is_shown(programs: Path, name: str, place: str, num_grads: str) -> None:
    """The head says how many autograd.grad() calls came before it, and how to see one."""
    first, second, *_ = gradinspect("trace", programs / f"{name}.py").stdout.splitlines()
    calls = "call" if num_grads == "1" else "calls"

    assert first.startswith(f"backward #1  {place}")
    assert second == f"{num_grads} autograd.grad {calls} before it; --grad N shows one"


def test_an_autograd_grad_can_be_chosen(programs: Path) -> None:
    """Calls are numbered by kind, and the program is stopped there."""
    done = gradinspect("trace", programs / "penalty.py", "--grad", "2")

    assert done.stdout.startswith("autograd.grad #2  penalty.py:10  ")
    assert "end of program" not in done.stdout


def test_a_program_without_backward_shows_its_first_autograd_grad(programs: Path) -> None:
    """It was recorded when it happened, so its saved tensors were live; the program ran to its end."""
    done = gradinspect("trace", programs / "sampler.py")
    lines = done.stdout.splitlines()

    assert done.returncode == 0
    assert lines[:3] == [
        "end of program",
        "autograd.grad #1  sampler.py:8  (force,) = torch.autograd.grad(energy, at)",
        "19 autograd.grad calls more, and no backward call; --grad N shows one",
    ]
    assert "12 B held: 12 B inputs" in done.stdout
    assert "freed" not in done.stdout


@pytest.mark.parametrize(
    ("word", "code", "sentence"),
    [
        ("exit", 3, "The script ended with exit code 5 after 20 autograd.grad calls."),
        ("fail", 3, "The script failed with ValueError after 20 autograd.grad calls."),
    ],
)
def test_what_was_recorded_is_shown_though_the_program_ends_badly(
    programs: Path, word: str, code: int, sentence: str
) -> None:
    """If a program without backward() fails, its first autograd.grad() is still shown."""
    done = gradinspect("trace", programs / "sampler.py", "--", "20", word)

    assert done.returncode == code
    assert "autograd.grad #1  sampler.py:8" in done.stdout
    assert done.stderr.splitlines()[-1] == f"gradinspect: {sentence}"


def test_an_interrupt_shows_what_was_recorded(tmp_path: Path) -> None:
    """A sampler that runs for hours does not have to end."""
    script = tmp_path / "long.py"
    script.write_text(
        "import os, signal\nimport torch\nx = torch.ones(2, requires_grad=True)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "torch.autograd.grad((x * x).sum(), x)\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(60)\n"
    )
    done = gradinspect("trace", script)

    assert "autograd.grad #1  long.py:5" in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "gradinspect: The script failed with KeyboardInterrupt after 1 autograd.grad call."
    )


def test_only_the_first_autograd_grad_is_recorded_and_no_tensor_is_kept(tmp_path: Path) -> None:
    """A program of many calls needs no more memory; the record holds no tensor."""
    script = tmp_path / "many.py"
    script.write_text(
        "import gc, weakref\nimport torch\nseen = []\n"
        "for _ in range(3):\n"
        "    x = torch.ones(1000, requires_grad=True)\n"
        "    y = x.exp()\n"
        "    seen.append(weakref.ref(y.untyped_storage()))\n"
        "    torch.autograd.grad((y * y).sum(), x)\n"
        "    seen.append(weakref.ref(x))\n"
        "    del x, y\n"
        "    assert seen[-1]() is None, 'kept'\n"
        "print('alive', sum(1 for item in gc.get_objects() if isinstance(item, torch.Tensor)))\n"
    )
    done = gradinspect("trace", script)

    assert done.returncode == 0
    assert done.stdout.startswith("alive 0\nautograd.grad #1  many.py:8")


@pytest.mark.slow
def test_the_program_is_as_without_us(tmp_path: Path) -> None:
    """Gradients after a recorded autograd.grad() are bit-equal, and no hook of the program has run once more."""
    script = tmp_path / "same.py"
    script.write_text(
        "import torch\ntorch.manual_seed(0)\nw = torch.randn(4, 4, requires_grad=True)\ncount = []\n"
        "y = (w @ w).tanh()\ny.register_hook(count.append)\ny.grad_fn.register_prehook(lambda _: count.append(1))\n"
        "(slope,) = torch.autograd.grad(y.sum(), w, create_graph=True)\n"
        "print(len(count))\n(slope.norm() + y.sum()).backward()\nprint(w.grad.sum().item().hex(), len(count))\n"
    )
    plain = python(script).stdout
    done = gradinspect("trace", script, "--continue")

    assert done.stdout.startswith(plain)
    assert "backward #1  same.py:10" in done.stdout


def test_a_capture_file_tells_of_the_other_calls(programs: Path, tmp_path: Path) -> None:
    """What the heading shows is in the record."""
    file = tmp_path / "run.json"
    gradinspect("export", programs / "residual.py", "-o", file)
    read = gradinspect("trace", file)

    assert read.stdout.splitlines()[1] == "3 autograd.grad calls before it; --grad N shows one"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("penalty", ["grads"], "backward #1  penalty.py:16"),
        ("sampler", ["grads"], "autograd.grad #1  sampler.py:8"),
        ("penalty", ["grads", "--steps", "2"], "2 backward calls observed"),
        ("sampler", ["grads", "--steps", "2"], "2 autograd.grad calls observed"),
        ("sampler", ["grads", "--steps", "2", "--grad", "3"], "... #4"),
        ("residual", ["memory", "--iterations", "2"], "2 backward calls of residual.py"),
        ("sampler", ["memory", "--iterations", "4"], "4 autograd.grad calls of sampler.py"),
        ("residual", ["memory"], "3 autograd.grad calls before it; --grad N shows one"),
        ("residual", ["step", "--script", os.devnull], "backward #1  residual.py:12"),
        ("residual", ["step", "--script", os.devnull, "--grad", "2"], "autograd.grad #2  residual.py:8"),
        ("sampler", ["trace", "--create-graph", "--grad", "2"], "the graph built by autograd.grad #2"),
        ("residual", ["trace", "--create-graph"], "the graph built by backward #1"),
        ("sampler", ["saved"], "CosBackward0 "),
        ("sampler", ["check"], "No problems found in 16 autograd.grad calls of sampler.py"),
        ("sampler", ["check", "--grad", "2"], "No problems found in 2 autograd.grad calls of sampler.py"),
        ("penalty", ["check"], "No problems found in 3 backward calls and 3 autograd.grad calls of penalty.py"),
        ("penalty", ["check", "--backward", "3"], "No problems found in 1 backward call and 1 autograd.grad call"),
    ],
)
def test_every_verb_takes_the_same_call(programs: Path, name: str, words: list[str], expected: str) -> None:
    """Each verb looks at backward() calls, and at autograd.grad() calls where there is nothing else."""
    verb, *options = words
    done = gradinspect(verb, f"{name}.py", *options, cwd=programs)

    assert expected in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sampler", "penalty"])
def test_times_and_colors_take_the_same_call(programs: Path, name: str, tmp_path: Path) -> None:
    """A timeline and the gradients in a picture are of the call that is shown."""
    script = programs / f"{name}.py"
    shown = "autograd.grad #1" if name == "sampler" else "backward #1"
    timed = gradinspect("grads", script, "--timeline", tmp_path / "t.json")
    drawn = gradinspect("export", script, "--color-by", "grad", "-o", tmp_path / "g.dot")

    assert shown in timed.stdout
    assert shown in (tmp_path / "t.json").read_text()
    assert drawn.returncode == 0, drawn.stderr
    assert shown in (tmp_path / "g.dot").read_text()


@pytest.mark.parametrize("options", [("step",), ("trace", "--create-graph")])
def test_what_has_to_run_at_once_has_to_be_chosen(programs: Path, options: tuple[str, ...]) -> None:
    """To step through an autograd.grad(), or see the graph it builds, it has to be named; the sentence says how."""
    verb, *words = options
    done = gradinspect(verb, "sampler.py", *words, cwd=programs)

    assert done.returncode == 2
    assert done.stderr == (
        "gradinspect: 'sampler.py' never calls backward(), but it calls autograd.grad() 20 times. "
        "Choose one of these calls, for example with --grad 1.\n"
    )


@pytest.mark.parametrize("words", [("check",), ("grads",), ("grads", "--steps", "2")])
def test_what_watches_backward_refuses_the_end(programs: Path, words: tuple[str, ...]) -> None:
    """`--at end` is about tensors that a script leaves, so these verbs do not have it."""
    verb, *options = words
    done = gradinspect(verb, "penalty.py", "--at", "end", *options, cwd=programs)

    assert done.returncode == 2
    assert done.stdout == ""
    assert f"'{verb}' has no option '--at'." in done.stderr
    assert f"See: gradinspect {verb} --help" in done.stderr


@pytest.mark.parametrize("other", [["--backward", "1"], ["--at", "end"], ["--at", "backward"]])
def test_one_moment_is_asked_for(programs: Path, other: list[str]) -> None:
    """`--grad` excludes every other choice of a moment."""
    done = gradinspect("trace", "penalty.py", "--grad", "2", *other, cwd=programs)

    assert done.returncode == 2
    assert "'--grad 2'" in done.stderr
    assert "cannot be combined" in done.stderr


def test_a_sampler_under_check_is_stopped_in_the_end(programs: Path) -> None:
    """It would run for hours: after many calls without a backward(), enough was seen."""
    done = gradinspect("check", "sampler.py", "--", "100000", cwd=programs)

    assert done.stdout == (
        "Not checked: what comes after 256 autograd.grad() calls in a row.\n"
        "No problems found in 16 autograd.grad calls of sampler.py\n"
    )


def test_check_sees_an_autograd_grad_that_has_no_graph(tmp_path: Path) -> None:
    """A third derivative that is missing is found, though other calls came first."""
    script = tmp_path / "third.py"
    script.write_text(
        "import torch\nx = torch.rand(4, 1, requires_grad=True)\nnet = torch.nn.Linear(1, 1)\n"
        "u = net(x).tanh()\nsums = [torch.ones_like(u)]\n"
        "a = torch.autograd.grad(u, x, sums, create_graph=True)[0]\n"
        "b = torch.autograd.grad(u, x, sums, create_graph=True)[0]\n"
        "c = torch.autograd.grad(u, x, sums, retain_graph=True)[0]\n"
        "d = torch.autograd.grad(c, x, sums)[0]\n(a + b + d).sum().backward()\n"
    )
    done = gradinspect("check", script)

    assert done.returncode == 1
    assert "third.py:8" in done.stdout


def test_the_output_of_a_callable_says_more_than_a_grad_inside_it(tmp_path: Path) -> None:
    """A model that computes forces in its forward is shown whole; one that returns numbers only, by its grad."""
    (tmp_path / "forces.py").write_text(
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        "def energy(x):\n"
        "    x = x.requires_grad_()\n    e = (w * x * x).sum()\n"
        "    (f,) = torch.autograd.grad(e, x, create_graph=True)\n    return e + f.norm()\n"
        "def numbers(x):\n    return energy(x).item()\n"
    )
    whole = gradinspect("trace", "forces.py:energy", "--input", "2x3", cwd=tmp_path)
    inner = gradinspect("trace", "forces.py:numbers", "--input", "2x3", cwd=tmp_path)

    assert whole.stdout.startswith("call of forces.py:energy\n1 autograd.grad call before it")
    assert inner.stdout.startswith("autograd.grad #1  forces.py:6")
