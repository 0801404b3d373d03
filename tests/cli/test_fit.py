"""`gradinspect fit`: exit statuses, what it says, and what it cannot do."""

import json
from pathlib import Path

import pytest
from runs import gradinspect, python
from step_memory_programs import PROGRAMS

SAMPLES = Path(__file__).parent.parent.parent / "samples"
CAPTURE = (
    '"run.json" has no record of the memory of a whole step. Create one with `gradinspect fit SCRIPT -o step.json`.\n'
)
READS = """
import torch
weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(2):
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.step()
    if loss < 3:
        print(loss.item())
"""


@pytest.mark.parametrize(("limit", "status"), [("2MiB", 0), ("512KiB", 1)])
def test_the_status_says_whether_it_fits(limit: str, status: int) -> None:
    """0 where it does, 1 where it does not; the first line says it too."""
    done = gradinspect("fit", "fit.py", "--limit", limit, cwd=SAMPLES)

    assert done.returncode == status
    assert done.stdout.startswith("It does not fit: " if status else "It fits: ")
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_has_the_peak_its_moment_its_kinds_and_what_is_not_counted() -> None:
    """Under these names."""
    figures = json.loads(gradinspect("fit", "fit.py", "--format", "json", "--limit", "1KiB", cwd=SAMPLES).stdout)

    assert sum(figures["by_kind"].values()) == figures["peak_bytes"]
    assert figures["at"]["line"] == "fit.py:27"
    assert figures["fits"] is False
    assert figures["not_counted"]
    assert len(figures["steps"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "verdict", "status"), [("1", "does not fit", 1), ("1.5MiB", "may fit", 1), ("1GiB", "fits", 0)]
)
def test_for_cuda_the_blocks_of_its_allocator_are_counted(limit: str, verdict: str, status: int) -> None:
    """Between what is allocated and what is reserved it may fit; what is not counted is named."""
    figures = json.loads(gradinspect("fit", "fit.py", "--device", "cuda", "--format", "json", cwd=SAMPLES).stdout)
    done = gradinspect("fit", "fit.py", "--device", "cuda:0", "--limit", limit, cwd=SAMPLES)
    allocated, reserved = figures["device"]["allocated_bytes"], figures["device"]["reserved_bytes"]

    assert figures["peak_bytes"] <= allocated <= reserved
    assert (allocated % 512, reserved % 2**21) == (0, 0)
    assert "workspaces of cuBLAS and cuDNN" in figures["not_counted"]
    assert done.stdout.startswith(f"It {verdict}: ")
    assert done.returncode == status


@pytest.mark.slow
@pytest.mark.parametrize("by", ["module", "line", "storage", "phase", "kind"])
def test_each_grouping_is_shown(by: str) -> None:
    """Its bytes add up to the peak."""
    figures = json.loads(gradinspect("fit", "fit.py", "--format", "json", "--by", by, cwd=SAMPLES).stdout)

    assert sum(group["num_bytes"] for group in figures["groups"]) == figures["peak_bytes"]
    for group in figures["groups"]:
        assert group["least_bytes"] * group["times"] <= group["num_bytes"] <= group["most_bytes"] * group["times"]
    assert gradinspect("fit", "fit.py", "--by", by, cwd=SAMPLES).returncode == 0


@pytest.mark.parametrize(
    ("program", "options", "sentence"),
    [
        (READS.replace("if loss < 3:", "if torch.bincount(weight.long().flatten()).numel():"), ("--hint", "1"),
         "'if torch.bincount(weight.long().flatten()).numel():' (train.py:9) makes a tensor whose size depends on "
         "values, which fake tensors do not have. Run with --real.\n"),
        (READS, ("--hint", "nan"), "'--hint nan' is not a finite number. Give one such as --hint 1.\n"),
        (READS, ("--hint", "2", "--real"),
         "'--hint 2' is for fake tensors, and --real has values. Remove this option.\n"),
        ("import torch\n", (), "'train.py' never calls backward in this process, so there are no gradients to observe. "
         "Give a script that trains.\n"),
        (PROGRAMS["SGD"], ("--limit", "much"),
         "'much' is not a valid size. Give a number of bytes, or one with a unit: 512KiB, 1MiB, 2GiB.\n"),
        (PROGRAMS["SGD"], ("--device", "tpu"),
         "The allocator of '--device tpu' is not known. Give cpu or cuda.\n"),
        (PROGRAMS["SGD"], ("--device", "cuda", "--real"),
         "'--device cuda' is for a prediction, and --real measures the device of the program. Remove one.\n"),
        (PROGRAMS["SGD"], ("--limit", "0"), "'--limit 0' leaves no memory at all. Give a size such as 24GiB.\n"),
    ],
    ids=["size of values", "hint is no number", "hint of values", "no backward", "no size", "no device",
         "real device", "0"],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(
    program: str, options: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    """Exit 2, and no traceback."""
    (tmp_path / "train.py").write_text(program)
    done = gradinspect("fit", "train.py", *options, cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: {sentence}"
    assert "It fits" not in done.stdout


@pytest.mark.slow
def test_what_reads_values_is_named_where_the_program_has_no_second_run(tmp_path: Path) -> None:
    """It has had another program make a folder, and cannot do it again. NOTE [Runs for values] in `values_first`."""
    (tmp_path / "train.py").write_text(
        READS.replace("import torch\n", "import os, torch; assert not os.system('mkdir made')\n", 1)
    )
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "running 'train.py' with values, for what it reads\n"
        "gradinspect: 'if loss < 3:' (train.py:9) reads values, which fake tensors do not have. "
        "Run with --real, or give the number to answer with: --hint 1.\n"
    )


def test_a_capture_file_holds_no_whole_step(tmp_path: Path) -> None:
    """It is said in one sentence."""
    gradinspect("export", SAMPLES / "mlp.py", "-o", "run.json", cwd=tmp_path)
    done = gradinspect("fit", "run.json", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: {CAPTURE}"


def test_a_program_that_reads_values_is_measured(tmp_path: Path) -> None:
    """On real tensors it runs as it is, and prints what it prints."""
    (tmp_path / "train.py").write_text(READS)
    done = gradinspect("fit", "train.py", "--real", cwd=tmp_path)

    assert done.returncode == 0
    assert "Peak: " in done.stdout
    assert "(measured)" in done.stdout


def test_a_program_that_fails_before_its_steps_are_complete_gets_no_peak(tmp_path: Path) -> None:
    """What was seen until then would mislead."""
    (tmp_path / "train.py").write_text(READS.replace("if loss < 3:", "if True:\n        raise ValueError('mine')"))
    done = gradinspect("fit", "train.py", "--limit", "1GiB", cwd=tmp_path)

    assert done.returncode == 3
    assert "ValueError: mine" in done.stderr
    assert "It fits" not in done.stdout


def test_a_model_that_ends_with_its_step_is_named_and_counted(tmp_path: Path) -> None:
    """What is there at the end of the step is what backward has left, not what is left when the model is gone."""
    (tmp_path / "net.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = torch.nn.Linear(64, 64)\n    def forward(self, x):\n        return self.layer(x).relu()\n"
    )
    done = gradinspect("fit", "net.py:Net()", "--input", "2x64", "--format", "json", "--by", "module", cwd=tmp_path)
    figures = json.loads(done.stdout)
    weights = 4 * (64 * 64 + 64)

    assert figures["steps"][0]["end_bytes"] >= 2 * weights  # with their gradients
    assert {group["label"] for group in figures["groups"]} <= {"layer", "(model itself)", "(outside modules)"}


TWO_MODELS = """
import torch
from torch import nn
class Loss(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.head = head
    def forward(self, hidden, labels):
        return nn.functional.cross_entropy(self.head(hidden), labels)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(16, 16), nn.Linear(16, 16)
    def forward(self, x):
        return self.body(x).relu()
def main():
    net = Net()
    criterion = Loss(net.head)
    optimizer = torch.optim.SGD(net.parameters())
    for _ in range(3):
        criterion(net(torch.randn(64, 16)), torch.randint(16, (64,))).backward()
        optimizer.step()
        optimizer.zero_grad()
main()
"""


def test_models_of_a_function_keep_their_names_when_it_has_ended(tmp_path: Path) -> None:
    """Each module is one row, also one that a loss has from the model."""
    (tmp_path / "train.py").write_text(TWO_MODELS)
    done = gradinspect("fit", "train.py", "--format", "json", "--by", "module", cwd=tmp_path)
    groups = json.loads(done.stdout)["groups"]

    assert sorted(group["label"] for group in groups) == [
        "(outside modules)", "criterion", "net", "net.body", "net.head",
    ]  # fmt: skip


PRINTS = """
import torch
weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range({steps}):
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize("steps", [1, 3])
def test_a_loss_that_is_printed_is_no_reason_to_refuse(steps: int, tmp_path: Path) -> None:
    """It is answered, the line is named, and the steps that were made are shown."""
    (tmp_path / "train.py").write_text(PRINTS.format(steps=steps))
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("1.0\n")
    assert done.stdout.count("\n  step ") == min(steps, 2)
    assert "Values that are read were taken to be 1: train.py:9." in done.stdout


def test_a_number_that_is_given_answers_every_read(tmp_path: Path) -> None:
    """Also those that decide what runs next, and the lines are named."""
    (tmp_path / "train.py").write_text(READS)
    done = gradinspect("fit", "train.py", "--hint", "2", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("2.0\n2.0\n")
    assert "Values that are read were taken to be 2: train.py:9, train.py:10." in done.stdout


def test_what_a_module_reads_is_not_assumed(tmp_path: Path) -> None:
    """It may decide what the module computes."""
    program = (
        "import torch\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n"
        "        return super().forward(x) * x.mean().item()\n"
        "Net(2, 2)(torch.ones(3, 2)).sum().backward()\n"
    )
    done = gradinspect("fit", "-", cwd=tmp_path, typed=program)

    assert done.returncode == 2
    assert "(<stdin>:4) reads values" in done.stderr


def test_the_record_is_kept_and_read(tmp_path: Path) -> None:
    """With the same figures, under another limit, without torch; kinds add up at each point of the curve."""
    (tmp_path / "train.py").write_text(PROGRAMS["zeroed in place"])
    made = gradinspect(
        "fit", "train.py", "-o", "s.json.gz", "-o", "s.svg", "-o", "s.html", "--format", "json", cwd=tmp_path
    )
    read = gradinspect("fit", "s.json.gz", "--format", "json", "--limit", "1B", cwd=tmp_path)
    figures, again = json.loads(made.stdout), json.loads(read.stdout)

    assert (made.returncode, read.returncode) == (0, 1)
    assert made.stderr == "Wrote s.json.gz\nWrote s.svg\nWrote s.html\n"
    assert {key: again[key] for key in ("peak_bytes", "by_kind", "steps", "curve")} == {
        key: figures[key] for key in ("peak_bytes", "by_kind", "steps", "curve")
    }
    assert all(sum(point["by_kind"].values()) == point["num_bytes"] for point in figures["curve"])
    assert max(point["num_bytes"] for point in figures["curve"]) == figures["peak_bytes"]
    assert any(point["by_kind"] == figures["by_kind"] for point in figures["curve"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("s.json --real", "'--real' is about running a program, and 's.json' is a file."),
        ("train.py -o s.txt", "The format of 's.txt' is unknown."),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(words: str, sentence: str, tmp_path: Path) -> None:
    """Before anything runs."""
    (tmp_path / "train.py").write_text(PROGRAMS["zeroed in place"])
    (tmp_path / "s.json").write_text("{}")
    done = gradinspect("fit", *words.split(), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gradinspect: {sentence}")


ON_META = """
import torch
with torch.device("meta"):
    weight = torch.ones(3, requires_grad=True)
for _ in range(2):
    weight.exp().sum().backward()
"""


def test_a_program_on_the_meta_device_is_said_to_have_no_memory(tmp_path: Path) -> None:
    """Its peak of 0 B is no figure of the program where it will run."""
    (tmp_path / "program.py").write_text(ON_META)
    done = gradinspect("fit", "program.py", cwd=tmp_path)

    assert done.stdout.startswith("Peak: 0 B (predicted)")
    assert "The loss is on the meta device, where tensors have no memory" in done.stdout


def test_a_model_that_was_moved_is_said_to_count_where_it_was(tmp_path: Path) -> None:
    """Until it was moved, which is before the first step."""
    done = gradinspect("fit", "torch.nn:Linear(4, 4)", "--input", "2x4", "--device", "meta", "--real", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "--device has moved the model before the first step" in done.stdout


IN_TURN = """
import torch
torch.manual_seed(0)
nets = [torch.nn.Linear(64, 64) for _ in range(2)]
optimizers = [torch.optim.Adam(net.parameters()) for net in nets]
for _ in range({rounds}):
    for net, optimizer in zip(nets, optimizers):
        loss = net(torch.ones(8, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--real",)])
def test_optimizers_in_turn_need_as_many_steps_each(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The state of both is there at the peak, as it is with any number of steps more."""
    script = tmp_path / "gan.py"
    script.write_text(IN_TURN.format(rounds=6))
    found, more = (
        json.loads(gradinspect("fit", script, *words, *steps, "--format", "json").stdout)
        for steps in ((), ("--steps", "9"))
    )

    assert len(found["steps"]) == 4
    assert found["by_kind"] == more["by_kind"]
    assert found["by_kind"]["optimizer_state"] > 2 * 2 * 64 * 64 * 4


WGAN = """
import torch
critic, generator, unused = (torch.nn.Linear(64, 64) for _ in range(3))
optimizers = [torch.optim.Adam(net.parameters()) for net in (critic, generator, {third})]
for step in range(40):
    net, optimizer = (generator, optimizers[1]) if step % 6 == 5 else (critic, optimizers[0])
    loss = net(torch.ones(8, 64)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("third", "is_missing"), [("critic", False), ("unused", True)])
def test_an_optimizer_that_steps_once_in_many_times_is_waited_for(tmp_path: Path, third: str, is_missing: bool) -> None:
    """Its state is there at the peak; one of parameters that others train, too, is not waited for."""
    script = tmp_path / "wgan.py"
    script.write_text(WGAN.format(third=third))
    found = json.loads(gradinspect("fit", script, "--format", "json").stdout)

    assert len(found["steps"]) == 12
    assert found["by_kind"]["optimizer_state"] > 2 * 2 * 64 * 64 * 4
    assert any("An optimizer has not stepped in 12 steps" in note for note in found["notes"]) == is_missing


WORKERS = """
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [{"x": torch.randn(64), "unused": torch.zeros(500)} for _ in range(64)]
for batch in DataLoader(data, batch_size=16, num_workers=1, prefetch_factor=1):
    optimizer.zero_grad()
    model(batch["x"]).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_batches_of_a_worker_count(tmp_path: Path) -> None:
    """They arrive in memory that processes share, also what is never used of them."""
    (tmp_path / "train.py").write_text(WORKERS)
    fit = ("fit", "train.py", "--format", "json")
    found, measured = (json.loads(gradinspect(*fit, *more, cwd=tmp_path).stdout) for more in ((), ("--real",)))

    assert found["peak_bytes"] == measured["peak_bytes"] > 2 * 16 * (64 + 500) * 4


def test_an_optimizer_whose_turn_did_not_come_again(tmp_path: Path) -> None:
    """Is named as what was not seen."""
    script = tmp_path / "gan.py"
    script.write_text(IN_TURN.format(rounds=1))

    assert "in which not every optimizer stepped 2 times" in " ".join(gradinspect("fit", script).stdout.split())


def test_a_step_that_is_made_up_is_said_so_at_the_top(tmp_path: Path) -> None:
    """And of what; nothing at the end speaks of steps of a program that makes none."""
    (tmp_path / "model.py").write_text("import torch\n\n\ndef make():\n    return torch.nn.Linear(4, 4)\n")
    summed = gradinspect("fit", "model.py:make()", "--input", "2x4", cwd=tmp_path).stdout
    chosen = gradinspect("fit", "model.py:make()", "--input", "2x4", "--loss", "out.sum() * 2", cwd=tmp_path).stdout

    assert summed.splitlines()[1:3] == [
        "  The step is made up: one call of 'model.py:make()', and backward of the sum of",
        "  its output, without an optimizer and its state.",
    ]
    assert "backward of out.sum() * 2, without" in " ".join(chosen.split())
    assert "were asked for" not in summed + chosen


PROFILED = """
import threading

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(32, 64)


def train():
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def look(work):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work()
    print("events", len(profiler.events()))


for step in range(4):
    if step == PROFILED_STEP:
        RUN
    else:
        train()
"""
_HERE = "look(train)"
_THREAD = "thread = threading.Thread(target=look, args=(lambda: torch.ones(3) + 1,)); thread.start(); thread.join()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "run", "answer"),
    [
        (3, _HERE, "Peak:"),
        (0, _HERE, "within the first 2 steps"),
        (1, _THREAD, "Another thread of the program starts torch's profiler"),
        (3, _THREAD, "Another thread of the program starts torch's profiler"),
    ],
)
def test_a_profiler_of_the_program_sees_what_it_sees_without_us(
    step: int, run: str, answer: str, tmp_path: Path
) -> None:
    """Ours ends before; what it has not measured it does not answer."""
    script = tmp_path / "train.py"
    script.write_text(PROFILED.replace("PROFILED_STEP", str(step)).replace("RUN", run))
    plain = python(script)
    result = gradinspect("fit", str(script), "--real", "--continue")
    assert plain.stdout.strip() in result.stdout
    assert answer in result.stdout + result.stderr
    assert result.returncode == (0 if answer == "Peak:" else 2)


@pytest.mark.slow
def test_sparse_tensors_that_values_make_leave_a_bound_from_below(tmp_path: Path) -> None:
    """They are not counted, so the peak is at least what is printed, and no limit is surely kept."""
    (tmp_path / "learn.py").write_text(
        "import torch\n"
        "weight = torch.eye(50).to_sparse_coo().coalesce().requires_grad_()\n"
        "for _ in range(2):\n"
        "    weight.grad = None\n"
        "    torch.sparse.mm(weight, torch.ones(50, 8)).sum().backward()\n"
    )
    done = gradinspect("fit", "learn.py", "--limit", "1GiB", cwd=tmp_path)
    assert (done.returncode, done.stdout[:26]) == (1, "It may fit: peak at least ")

    found = json.loads(gradinspect("fit", "learn.py", "--limit", "1GiB", "--format", "json", cwd=tmp_path).stdout)
    assert (found["is_least"], found["fits"]) == (True, False)
    assert gradinspect("fit", "learn.py", "--limit", "1GiB", "--real", cwd=tmp_path).stdout.startswith("It fits: peak ")
