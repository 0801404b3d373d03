"""`gradinspect train.py`: the headlines of one run, which is left as it was."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from runs import gradinspect

TRAIN = """\
import sys
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)], nn.Linear(64, 4))
opt = torch.optim.Adam(net.parameters())
for _ in range(18):
    x, y = torch.randn(32, 64), torch.randint(0, 4, (32,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(sys.argv[1:], sum(p.sum().item() for p in net.parameters()))
"""

IN_A_THREAD = """\
import threading
import torch
net = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
def train():
    for _ in range(20):
        opt.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
        opt.step()
thread = threading.Thread(target=train)
thread.start()
thread.join()
"""


COMPILED = """\
import torch
from torch import nn
net = torch.compile(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)), backend="aot_eager")
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.ones(4, 8)).square().sum().backward()
    opt.step()
"""


ACCUMULATING = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(40, 24), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 40))
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
for _ in range(3):
    opt.zero_grad()
    for _ in range(2):
        ids = torch.randint(0, 40, (8, 12))
        (nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten()) / 2).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
"""


TWO_OPTIMIZERS = """\
import torch
from torch import nn
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 16), nn.Tanh())
D = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
for _ in range(3):
    real, fake = torch.randn(16, 16), G(torch.randn(16, 8))
    opt_d.zero_grad()
    (bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))).backward()
    opt_d.step()
    opt_g.zero_grad()
    bce(D(fake), torch.ones(16, 1)).backward()
    opt_g.step()
"""


WITHOUT_OPTIMIZER = """\
import torch
weight = torch.randn(40, 40, requires_grad=True)
for _ in range(2):
    (torch.randn(8, 40) @ weight).relu().square().mean().backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad = None
"""


ALTERNATING = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ups = nn.ModuleList(nn.Linear(8, 80 if n == 4 else 8) for n in range(5))
        self.down = nn.ModuleList(nn.Linear(80 if n == 4 else 8, 8) for n in range(5))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(5))
    def forward(self, x):
        for up, down, norm in zip(self.ups, self.down, self.norms):
            x = norm(down(up(x).tanh()))
        return x
Net()(torch.ones(64, 8)).sum().backward()
"""


@pytest.fixture
def train(tmp_path: Path) -> Path:
    """A program that trains."""
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    return script


def test_the_whole_screen(train: Path) -> None:
    """From one run, which stops when all is known."""
    done = gradinspect("train.py", "--", "--lr", "0.1", cwd=train.parent)

    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == snapshot("""\
backward #1  train.py:12  loss.backward()
graph      36 nodes, 14 leaves, depth 17
           net.0-5 Sequential ×6, net.6 Linear
           gradinspect trace train.py -- --lr 0.1
memory     56.8 KiB held (+ 81.0 KiB of weights, in memory anyway)
             net.0-5  Sequential ×6, 8.0 KiB each     48.0 KiB   85%
             net.6  Linear                             8.0 KiB   14%
             (outside of these), mostly train.py:10      772 B    1%
           gradinspect memory train.py -- --lr 0.1
check      No problems found in 12 backward calls.
           gradinspect check train.py -- --lr 0.1
gradients  The gradient falls 197-fold from net.6 (1.5e-01) to net.0.0
           (7.8e-04).
           gradinspect grads train.py -- --lr 0.1
peak       458.4 KiB in forward, measured in 2 whole steps
           197.1 KiB optimizer state, 98.5 KiB gradients, 98.5 KiB parameters
           gradinspect fit train.py -- --lr 0.1
""")


@pytest.mark.slow
def test_what_the_verbs_say(train: Path) -> None:
    """Each headline is what its own verb reports, from a run of its own."""
    words = {"check": ("--steps", "12"), "memory": (), "fit": ("--real",)}
    alone = {
        verb: json.loads(gradinspect(verb, train, "--format", "json", *more).stdout) for verb, more in words.items()
    }
    found = json.loads(gradinspect(train, "--format", "json").stdout)

    assert found["check"] == alone["check"]
    assert found["memory"]["extra_bytes"] == alone["memory"]["extra_bytes"]
    assert found["peak"]["bytes"] == alone["fit"]["peak_bytes"]


def peaks(program: Path) -> tuple[str, dict[str, Any], int]:
    """Return what the overview says of a peak, the same for machines, and the peak that `fit` measures."""
    screen = gradinspect(program.name, cwd=program.parent).stdout
    words = ("--format", "json", "--quiet-script")
    found = json.loads(gradinspect("overview", program, *words).stdout)
    alone = json.loads(gradinspect("fit", program, "--real", *words).stdout)
    return screen.partition("\npeak ")[2], found, alone["peak_bytes"]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param(1, "measured in 1 whole step\n", marks=pytest.mark.slow),
        pytest.param(2, "measured in 2 whole steps\n", marks=pytest.mark.slow),
        (3, "measured in 2 whole steps\n"),
    ],
)
def test_the_peak_of_a_program_of_few_steps(train: Path, steps: int, said: str) -> None:
    """It is that of whole steps, and to the byte what `fit` measures: nothing that the check computes is in it."""
    train.write_text(train.read_text().replace("range(18)", f"range({steps})"))
    screen, found, alone = peaks(train)

    assert said in screen
    assert ("Not measured: a second step" in screen) == (steps == 1)
    assert found["peak"]["bytes"] == alone
    assert found["peak"]["whole_steps"] == min(steps, 2)
    assert sum(found["peak"]["by_kind"].values()) == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [TWO_OPTIMIZERS, ACCUMULATING, WITHOUT_OPTIMIZER],
    ids=["two optimizers", "accumulating", "without optimizer"],
)
def test_the_peak_of_other_kinds_of_steps(tmp_path: Path, program: str) -> None:
    """The same holds for accumulated gradients, two optimizers in turn, and none."""
    (tmp_path / "train.py").write_text(program)
    _, found, alone = peaks(tmp_path / "train.py")

    assert found["peak"]["bytes"] == alone


def test_a_step_that_does_not_end(train: Path) -> None:
    """What is there for certain is a bound, and it is said that there is no more."""
    train.write_text(train.read_text().replace("range(18)", "range(1)").replace("    opt.step()\n", ""))
    screen, found, alone = peaks(train)
    parameters = 4 * (6 * (64 * 64 + 64) + 64 * 4 + 4)

    assert screen.splitlines()[-2:] == [
        "           No whole step was measured: the program ended before one was over.",
        "           gradinspect fit train.py",
    ]
    assert found["peak"] is None
    assert found["peak_at_least"]["by_kind"]["parameter"] == parameters
    assert sum(found["peak_at_least"]["by_kind"].values()) == found["peak_at_least"]["bytes"] <= alone


@pytest.mark.slow
def test_a_program_that_evaluates_for_long_after_its_first_step(train: Path) -> None:
    """What one call shows is there after a while, and what it does not show is said: the program would go on."""
    wait = "    import time; print('evaluating', flush=True); time.sleep(400)\n"
    train.write_text(train.read_text().replace("    opt.step()\n", f"    opt.step()\n{wait}"))
    found = gradinspect("train.py", cwd=train.parent)
    screen = " ".join(found.stdout.split())

    assert found.returncode == 0, found.stderr
    assert "No problems found in 1 backward call, but not all was looked at." in screen
    assert re.search(r"Not checked: what follows the first backward call. No other one came within \d+ s.", screen)
    assert "measured in 1 whole step" in screen
    assert "Not measured: a second step" in screen
    assert screen.count("evaluating") == 1


@pytest.mark.slow
def test_much_before_the_training_is_not_followed(train: Path) -> None:
    """The profiler would keep all of it; the rest of the page is there."""
    text = train.read_text()
    loop = "one = torch.ones(2)\nfor _ in range(210_000):\n    torch.add(one, one)\n"
    train.write_text(text.replace("opt = ", f"{loop}opt = ").replace("range(18)", "range(3)"))
    screen = gradinspect("train.py", cwd=train.parent).stdout
    peak = " ".join(screen.partition("\npeak ")[2].split())

    assert "check      No problems found in " in screen
    assert "could not be followed: The program calls more of torch's functions before 2 steps are over" in peak


def test_blocks_that_alternate_are_folded(tmp_path: Path) -> None:
    """The one that holds more than the others is named, the range of the others is given."""
    (tmp_path / "net.py").write_text(ALTERNATING)
    lines = gradinspect("net.py", cwd=tmp_path).stdout.splitlines()

    assert "           ups.0-4 Linear ×5, down.0-4 Linear ×5, norms.0-4 LayerNorm ×5" in lines
    assert "             down.0-4  Linear ×5, down.4: 10.0 times the others   28.0 KiB   55%" in lines
    assert "             norms.0-4  LayerNorm ×5, 2.5 KiB each                12.5 KiB   25%" in lines


def test_other_lines_that_call_backward_are_named(tmp_path: Path) -> None:
    """Those of the calls that were checked, each once, and not the one whose graph is shown."""
    (tmp_path / "gan.py").write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\nfor step in range(3):\n"
        "    (w * 2).sum().backward()\n    (w * 3).mean().backward()\n"
    )
    first = gradinspect("gan.py", cwd=tmp_path).stdout.splitlines()
    found = json.loads(gradinspect("overview", "gan.py", "--format", "json", cwd=tmp_path).stdout)

    assert first[1] == "also #2 gan.py:5 (w * 3).mean().backward(); trace --backward N shows one"
    assert [(call["number"], call["line"]) for call in found["other_calls"]] == [(2, 5)]
    assert gradinspect("trace", "gan.py", "--backward", "2", cwd=tmp_path).stdout.startswith("backward #2  gan.py:5")


def test_calls_of_autograd_grad_are_shown_by_trace(tmp_path: Path) -> None:
    """The option that is named is one of the verb that is named."""
    (tmp_path / "penalty.py").write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\n"
        "g, = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)\ng.sum().backward()\n"
    )
    line = gradinspect("penalty.py", cwd=tmp_path).stdout.splitlines()[1]

    assert line == "1 autograd.grad call before it; trace --grad N shows one"
    assert gradinspect("trace", "penalty.py", "--grad", "1", cwd=tmp_path).returncode == 0


def test_the_program_is_left_as_it_was(train: Path) -> None:
    """It ends with the same bits, and prints what it prints."""
    plain = gradinspect("trace", train, "--continue").stdout.splitlines()[0]

    assert gradinspect(train, "--continue").stdout.splitlines()[0] == plain


def test_commands_can_be_pasted(tmp_path: Path) -> None:
    """Whatever the program is called, and its arguments."""
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "it's.py").write_text("import torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\n")
    done = gradinspect("a b/it's.py", "--", "x y", cwd=tmp_path, COLUMNS="200")
    words = [shlex.split(line) for line in done.stdout.splitlines() if " gradinspect " in line]

    assert [line[-5:] for line in words] == [
        ["gradinspect", verb, "a b/it's.py", "--", "x y"] for verb in ("trace", "memory", "check", "grads", "fit")
    ]


def test_commands_repeat_how_the_program_is_run(tmp_path: Path) -> None:
    """A callable with its input and loss, and without compiling."""
    (tmp_path / "model.py").write_text("from torch import nn\ndef net():\n    return nn.Linear(3, 2)\n")
    words = ["model.py:net()", "--input", "2x3:float32", "--loss", "out.square().mean()", "--eager"]
    done = gradinspect(*words, cwd=tmp_path, COLUMNS="200")
    lines = [shlex.split(line) for line in done.stdout.splitlines() if "gradinspect trace" in line]

    assert [line[-7:] for line in lines] == [
        ["trace", "model.py:net()", "--input", "2x3", "--loss", "out.square().mean()", "--eager"]
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.py",), "The file 'nothing.py' does not exist."),
        (("trase", "train.py"), "No such command 'trase'."),
        (("train.py", "--depth", "2"), "The overview has no option '--depth'. 'trace' has it"),
        (("train.py", "--lr", "2"), "The overview has no option '--lr'. Options of the script follow --: gradinspect "),
    ],
)
def test_mistakes(train: Path, words: tuple[str, ...], said: str) -> None:
    """One sentence."""
    done = gradinspect(*words, cwd=train.parent)

    assert done.returncode == 2
    assert said in done.stderr


def test_a_program_that_fails(tmp_path: Path) -> None:
    """The headlines come before its error."""
    script = tmp_path / "fails.py"
    script.write_text("import torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\nraise KeyError(3)\n")
    done = gradinspect(script)

    assert done.returncode == 3
    assert done.stdout.startswith("backward #1  fails.py:2")
    assert "KeyError: 3" in done.stderr


def test_backward_in_a_thread(tmp_path: Path) -> None:
    """The memory of a step is followed in the thread that runs the program only; the rest is there."""
    script = tmp_path / "threads.py"
    script.write_text(IN_A_THREAD)
    done = gradinspect(script)

    assert done.returncode == 0
    assert done.stderr == ""
    assert "another thread than the one that runs the program calls backward" in " ".join(done.stdout.split())


def test_what_is_alive_is_not_looked_at_while_another_thread_trains(tmp_path: Path) -> None:
    """It frees storages without a lock, and torch ends the process if we hold an object of one of them meanwhile."""
    file = tmp_path / "beside.py"
    file.write_text(
        "import threading\nimport torch\nhas_run, is_over = threading.Event(), threading.Event()\n"
        "def beside():\n    torch.ones(2, requires_grad=True).sum().backward()\n    has_run.set()\n    is_over.wait()\n"
        "thread = threading.Thread(target=beside)\nthread.start()\nhas_run.wait()\n"
        "model = torch.nn.Linear(3, 1)\nmodel(torch.ones(2, 3)).sum().backward()\nis_over.set()\nthread.join()\n"
    )

    done = gradinspect("overview", file)

    assert done.returncode == 0
    assert "At least" not in done.stdout


@pytest.mark.slow
def test_no_step_is_followed_while_another_thread_trains(tmp_path: Path) -> None:
    """Its gradients are among what is alive, and torch ends the process if it frees one that we hold."""
    file = tmp_path / "beside.py"
    file.write_text(
        "import threading\nimport torch\nhas_run, is_over = threading.Event(), threading.Event()\n"
        "def beside():\n    torch.ones(2, requires_grad=True).sum().backward()\n    has_run.set()\n    is_over.wait()\n"
        "thread = threading.Thread(target=beside)\nthread.start()\nhas_run.wait()\n"
        "model = torch.nn.Linear(3, 1)\noptimizer = torch.optim.SGD(model.parameters())\n"
        "for _ in range(30):\n    model(torch.ones(2, 3)).sum().backward()\n    optimizer.step()\n"
        "is_over.set()\nthread.join()\n"
    )

    done = gradinspect("overview", file)

    assert done.returncode == 0
    assert "another thread than the one that runs the program calls backward" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_what_is_inside_compiled_nodes_is_counted_as_on_the_other_screens(tmp_path: Path) -> None:
    """Its operators, and the modules that hold the bytes; gradients are measured outside of them, and that is said."""
    (tmp_path / "train.py").write_text(COMPILED)
    page = gradinspect("train.py", cwd=tmp_path).stdout
    found = json.loads(gradinspect("overview", "train.py", "--format", "json", cwd=tmp_path).stdout)
    traced = json.loads(gradinspect("trace", "train.py", "--format", "json", cwd=tmp_path).stdout)
    memory = json.loads(gradinspect("memory", "train.py", "--format", "json", cwd=tmp_path).stdout)

    assert found["graph"]["nodes"] == traced["nodes"]
    assert found["memory"]["extra_bytes"] == memory["extra_bytes"]
    assert "  net.0,2  Linear ×2, 128..256 B each " in page
    assert "torch.compile so far: 1 graph, 0 graph breaks, 0 recompiles\n" in page
    assert "Not measured: inside 1 compiled node. --eager compiles nothing.\n" in page
    assert found["gradients"]["unmeasured"] == ["Not measured: inside 1 compiled node. --eager compiles nothing."]
