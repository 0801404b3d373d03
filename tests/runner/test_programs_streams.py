"""The report survives what a program does to its streams and its excepthook, which stay its own until it has ended."""

from pathlib import Path

import pytest
from runs import gradinspect, python

TRAINING = """
import os, sys
import torch

def train():
    model = torch.nn.Linear(4, 3)
    for _ in range(3):
        model(torch.ones(5, 4)).pow(2).mean().backward()
"""
FAILED, NOT_FLUSHED, LEFT = 3, 120, 7
REPORTS = {
    "trace": "backward #1",
    "check": "3 backward calls of",
    "grads --steps 2": "norm",
    "fit --real": "Peak:",
    "saved": "held",
}
HOOKS = {
    "raises": "def hook(*_): raise KeyError('in hook')\nsys.excepthook = hook",
    "exits": "def hook(*_): sys.exit(7)\nsys.excepthook = hook",
    "closes": "def hook(*_): sys.stdout.close(); sys.stderr.close()\nsys.excepthook = hook",
    "deleted": "del sys.excepthook",
    "both deleted": "del sys.excepthook, sys.__excepthook__",
    "none": "sys.excepthook = None",
}
STREAMS = {
    "closed": ("sys.stdout.close()", 0),
    "none": ("sys.stdout = sys.stderr = None", 0),
    "deleted": ("del sys.stdout, sys.stderr", 0),
    "without methods": ("sys.stdout = sys.stderr = object()", NOT_FLUSHED),
    "detached": ("buffer = sys.stdout.detach()", NOT_FLUSHED),
    "another file": ("os.dup2(os.open(os.devnull, os.O_WRONLY), 1)", 0),
    "descriptor closed": ("os.close(1)", 0),
    "all descriptors closed": ("os.closerange(3, 256)", 0),
    "daemon": ("os.closerange(3, 256)\nfiles = [open(f'{number}.log', 'w') for number in range(20)]", 0),
}


def run(script: Path, program: str, words: str) -> tuple[int, bool, str]:
    """Return the exit code, whether there is a report, and stderr."""
    script.write_text(TRAINING + program)
    verb, *options = words.split()
    done = gradinspect(verb, script, *options, "--continue", cwd=script.parent)
    return done.returncode, REPORTS[words] in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", list(REPORTS)[:3])
@pytest.mark.parametrize("hook", HOOKS)
def test_any_excepthook_leaves_the_report(hook: str, words: str, tmp_path: Path) -> None:
    """And the sentence that says how the program failed."""
    code, has_report, errors = run(tmp_path / "train.py", f"{HOOKS[hook]}\ntrain()\nraise ValueError('boom')\n", words)

    assert (code, has_report) == (LEFT if hook == "exits" else FAILED, True)
    assert errors.endswith("gradinspect: The script failed with ValueError after 3 backward calls.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left", "program", "words", "expected"),
    [
        ("0", "train()", "trace --continue", 0),
        ("'bye'", "train()", "grads --steps 9 --continue", 1),
        ("True", "train()", "saved --continue", 1),
        ("9", "", "trace --continue", 9),
        ("0", "", "trace --continue", FAILED),  # there is no report
        ("9", "train()", "grads --steps 9", FAILED),
        ("9", "", "trace", FAILED),
    ],
)
def test_an_excepthook_that_exits_passes_its_code_on(
    left: str, program: str, words: str, expected: int, tmp_path: Path
) -> None:
    """With --continue only, and never as if all were well where nothing was recorded."""
    script = tmp_path / "train.py"
    hook = f"def hook(*_): sys.exit({left})\nsys.excepthook = hook"
    script.write_text(f"{TRAINING}{hook}\n{program}\nraise ValueError('boom')\n")
    verb, *options = words.split()

    done = gradinspect(verb, script, *options)

    assert done.returncode == expected
    assert "gradinspect: The script failed " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("stream", STREAMS)
def test_any_stream_leaves_the_report(stream: str, tmp_path: Path) -> None:
    """Under each verb in turn; what Python says of a stream at its end, and its code, are as without us."""
    change, expected = STREAMS[stream]
    words = list(REPORTS)[list(STREAMS).index(stream) % len(REPORTS)]

    code, has_report, errors = run(tmp_path / "train.py", f"{change}\ntrain()\n", words)

    assert (code, has_report) == (expected, True)
    assert "Traceback" not in errors
    assert all(not file.read_bytes() for file in tmp_path.glob("*.log"))  # our descriptors may have their numbers now


@pytest.mark.slow
@pytest.mark.parametrize("change", ["del sys.excepthook", "sys.excepthook = None", "buffer = sys.stdout.detach()"])
def test_programs_that_are_stopped(change: str, tmp_path: Path) -> None:
    """They are stopped and compared, though they lack what the threading module needs, or cannot be flushed."""
    script = tmp_path / "train.py"
    script.write_text(f"{TRAINING}{change}\ntrain()\n")

    done = gradinspect("diff", script, script)
    stopped = gradinspect("grads", script, "--steps", "2")

    assert "No difference." in done.stdout
    assert done.returncode == 0
    assert "Traceback" not in stopped.stderr


@pytest.mark.parametrize("verb", ["trace", "check"])
def test_the_excepthook_runs_as_the_program(verb: str, tmp_path: Path) -> None:
    """In its folder, with its streams and builtins, also after the report."""
    script, said = tmp_path / "train.py", tmp_path / "said.txt"
    state = "[os.getcwd(), sys.stdout is theirs, builtins.print is theirs]"
    hook = f"def hook(*_): open({str(said)!r}, 'w').write(str({state}))"
    change = "import builtins, io\ntheirs = io.StringIO()\nsys.stdout = builtins.print = theirs\nos.chdir('/')"
    script.write_text(f"{TRAINING}{hook}\n{change}\nsys.excepthook = hook\ntrain()\nraise ValueError\n")

    done = gradinspect(verb, script, "--continue")

    assert done.returncode == FAILED
    assert said.read_text() == "['/', True, True]"


def test_os_exit_in_an_excepthook_is_as_plain(tmp_path: Path) -> None:
    """Nothing can be printed after it; `check` has reported before."""
    hook = "def hook(*_): os._exit(9)\nsys.excepthook = hook"
    code, has_report, _ = run(tmp_path / "train.py", f"{hook}\ntrain()\nraise ValueError('boom')\n", "check")

    assert (code, has_report) == (9, True)


@pytest.mark.parametrize("verb", ["trace", "check", "grads", "saved"])
def test_warnings_of_a_backward_call_name_the_line_that_they_name_without_us(verb: str, tmp_path: Path) -> None:
    """Also in the calls after the one that was recorded."""
    script = tmp_path / "warns.py"
    script.write_text(
        "import warnings\nimport torch\n"
        "class Warns(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x, number):\n        ctx.number = number\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, gradient):\n"
        "        for level in range(1, 7):\n"
        "            warnings.warn(f'call {ctx.number}, level {level}', stacklevel=level)\n"
        "        return gradient, None\n"
        "for number in range(3):\n"
        "    Warns.apply(torch.ones(2, requires_grad=True), number).sum().backward()\n"
    )
    plain = python(script, is_measured=False)
    done = gradinspect(verb, script, "--continue", cwd=tmp_path, is_measured=False)

    assert plain.stderr.count("UserWarning: call") == 18
    assert done.stderr == plain.stderr


NO_FILES = """
import os, resource, torch
model = torch.nn.Linear(4, 1)
model(torch.ones(2, 4)).sum().backward()
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError as error:
    print(error.errno)
model(torch.ones(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    "verb", ["trace", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("check", "grads", "memory"))]
)
def test_a_program_that_has_used_up_all_files_has_its_report(verb: str, tmp_path: Path) -> None:
    """What is printed needs nothing that is still to be read."""
    (tmp_path / "train.py").write_text(NO_FILES)
    done = gradinspect(verb, "train.py", "--continue", cwd=tmp_path, is_new=True, is_measured=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("24\n")
    assert "model(torch.ones(2, 4)).sum().backward()" in done.stdout or verb == "check"
