"""`gradinspect step` as a user types it: commands from a file or a pipe, reports, and each mistake in one sentence."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.cli.output.debugger import COMMANDS

PRODUCT = """\
import torch
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.tensor(2.0, requires_grad=True)
y = w * x
loss = y.sum()
loss.backward()
print("after", x.grad)
"""


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A script that multiplies and sums."""
    script = tmp_path / "product.py"
    script.write_text(PRODUCT)
    return script


def step(script: Path, *commands: str, options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    """Step through a script with commands from a pipe."""
    return gradinspect("step", script, *options, typed="\n".join(commands))


END = """\
Backward is done: 4 steps.
2 formulas called by hand; each gave exactly what the engine returned.
2 leaf gradients compared with the sums of these steps: bit-equal.
"""


def test_the_whole_screen(product: Path) -> None:
    """Commands are echoed, each node has its screen, the end compares."""
    done = step(product, "step", "break zero", "until #1", "where", "list", "print saved.other * 2", "c")

    assert done.stderr == ""
    assert (
        done.stdout
        == f"""\
backward #1  product.py:6  loss.backward()
4 nodes, one step each. Type help for a list of commands.
(step) step
#0 SumBackward0                                                           step 1
  product.py:5  loss = y.sum()
  in     f32[]  1
  out    self → #1 MulBackward0
         = grad.expand_symint(self.sym_sizes())
         f32[3]  norm 1.73, 1 to 1
         [1, 1, 1]
(step) break zero
(step) until #1
#1 MulBackward0                                                           step 2
  product.py:4  y = w * x
  in     f32[3]  norm 1.73, 1 to 1
         [1, 1, 1]
  saved  other  f32[3]  norm 3.74, 1 to 3
         [1, 2, 3]
         self  f32[]  2
  out    self → #2 AccumulateGrad w
         = mul_tensor_backward(grad, other, self.scalar_type())
         f32[]  6
         the formula gives [3]; the engine sums it to the shape of the forward
           input
  out    other → #3 AccumulateGrad x
         = mul_tensor_backward(grad, self, other.scalar_type())
         f32[3]  norm 3.46, 2 to 2
         [2, 2, 2]
(step) where
  #0 SumBackward0  product.py:5
> #1 MulBackward0  product.py:4
(step) list
     1  import torch
     2  x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
     3  w = torch.tensor(2.0, requires_grad=True)
>    4  y = w * x
     5  loss = y.sum()
     6  loss.backward()
     7  print("after", x.grad)
(step) print saved.other * 2
f32[3]  norm 7.48, 2 to 6
[2, 4, 6]
(step) c
{END}"""
    )


def test_commands_that_go_wrong_say_so(product: Path) -> None:
    """And the debugger goes on."""
    done = step(
        product,
        "where",
        "foo",
        "help foo",
        "s",
        "up",
        "print 1/0",
        "print nosuch",
        "print grad * 2",
        "nodes",
        "help",
        "c",
    )

    assert done.returncode == 0
    for sentence in (
        "No node has run yet. Try step.",
        "There is no command 'foo'. Try help.",
        "There is no command 'foo'.",
        "This is the root.",
        "ZeroDivisionError: division by zero",
        "f32[]  2\n",
        "NameError: name 'nosuch' is not defined. Available: grad, incoming, outgoing, saved, node, torch.",
        "There is no command 'nodes'. Try help.",
        "run until such a node has run: until #12.",
    ):
        assert sentence in done.stdout
    assert done.stdout.endswith(END)


@pytest.mark.parametrize("what", ["0", "#0", "Sum", "Sum*", "product.py:5"])
def test_until_refuses_what_has_run(product: Path, what: str) -> None:
    """It would run to the end."""
    done = step(product, "step", f"until {what}")

    assert done.returncode == 2
    assert "has run already." in done.stderr
    assert "Backward is done" not in done.stdout


def test_list_begins_at_the_loss(product: Path) -> None:
    """Before the first step."""
    assert ">    5  loss = y.sum()" in step(product, "list", "c").stdout


@pytest.mark.parametrize("what", ["2", "#2", "w", "w*", "product.py:4"])
def test_until_stops_once_at_what_a_breakpoint_may_name(product: Path, what: str) -> None:
    """A node, a parameter or a line; and an expression needs no command."""
    done = step(product, f"until {what}", "incoming[0] * 2", "c")

    node = "#1 MulBackward0" if ":" in what else "#2 AccumulateGrad w"
    value = "f32[3]  norm 3.46, 2 to 2" if ":" in what else "f32[]  12"
    assert f"(step) until {what}\n{node}" in done.stdout
    assert f"(step) incoming[0] * 2\n{value}" in done.stdout
    assert done.stdout.endswith(END)


def test_no_line_of_the_help_is_wider_than_the_screen(product: Path) -> None:
    """Of the list of commands, and of each one."""
    done = step(product, "help", *(f"help {name}" for name in COMMANDS), "c")

    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("until #99", "There is no node '#99'. The nodes are #0 to #3."),
        ("until 0", "#0 has run already."),
        ("until", "There is no node ''. The nodes are #0 to #3."),
        ("until Nothing", 'No class, module or parameter matches "Nothing".'),
        ("break Nothing", 'No class, module or parameter matches "Nothing".'),
        ("watch y", 'No parameter matches "y". Available: "w", "x".'),
    ],
)
def test_an_unknown_place_ends_a_script_of_commands(product: Path, command: str, sentence: str) -> None:
    """It would run past the place that was meant; at a terminal the user can correct it."""
    done = step(product, "s", command, "c")

    assert done.returncode == 2
    assert done.stderr == f"gradinspect: {done.stderr.partition(': ')[2]}"
    assert sentence in done.stderr
    assert "Backward is done" not in done.stdout


def test_breakpoints_and_watches_stop(product: Path) -> None:
    """Each says why; up and down move along the way from the root."""
    done = step(product, "b Mul*", "watch x", "b", "c", "up", "p 1", "down", "down", "clear", "c", "c")

    assert "Stopped: Mul*" in done.stdout
    assert "Stopped: watch" in done.stdout
    assert "Tensors are only available for the current node; use down." in done.stdout
    assert "This is the current node." in done.stdout
    assert "Removed 1." in done.stdout
    assert done.stdout.endswith(END)


def test_quit_leaves(product: Path) -> None:
    """From the first prompt and from a node; the program ends there, its own lines unprinted."""
    for commands in (["quit"], ["s", "q"]):
        done = step(product, *commands)

        assert done.returncode == 0
        steps = "0 steps" if len(commands) == 1 else f"{len(commands) - 1} step"
        assert done.stdout.endswith(f"Stopped after {steps}; nothing was compared: 'continue' goes to the end.\n")
        assert "after tensor" not in done.stdout


def test_the_program_goes_on_unchanged(product: Path) -> None:
    """With --continue it prints what it would print."""
    done = step(product, "c", options=("--continue",))

    assert "after tensor([2., 2., 2.])\n" in done.stdout


def test_a_program_that_hides_its_output(product: Path) -> None:
    """`--quiet-script` hides the script's words, not ours."""
    done = step(product, "s", "c", options=("--continue", "--quiet-script"))

    assert "#0 SumBackward0" in done.stdout
    assert "after" not in done.stdout


def test_a_script_of_commands(product: Path, tmp_path: Path) -> None:
    """Comments and empty lines pass; when it ends, backward goes on."""
    commands = tmp_path / "commands"
    commands.write_text("# the product\n\nbreak Mul*\ncontinue\n")
    done = gradinspect("step", product, "--script", commands)
    missing = gradinspect("step", product, "--script", tmp_path / "none")

    assert done.stdout.count("(step) ") == 2
    assert "Stopped: Mul*" in done.stdout
    assert done.stdout.endswith(END)
    assert missing.returncode == 2
    assert missing.stderr.startswith("gradinspect: The command file '")


def test_reports(product: Path, tmp_path: Path) -> None:
    """Markdown and HTML with a section a node; what cannot be written is said before anything runs."""
    for suffix in ("md", "html"):
        file = tmp_path / f"steps.{suffix}"
        done = gradinspect("step", product, "--report", file)

        assert done.stdout == END
        assert done.stderr == f"Wrote {file}\n"
        assert "2. #1 MulBackward0" in file.read_text()
    again = gradinspect("step", product, "--report", tmp_path / "steps.md")
    unknown = gradinspect("step", product, "--report", tmp_path / "steps.pdf")

    assert again.returncode == unknown.returncode == 2
    assert again.stderr.endswith("exists. Use --force to overwrite it.\n")
    assert unknown.stderr.endswith("is unknown. Supported extensions: .md .html.\n")


OUTPUT = """\
import torch
a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (a * a)[0]
"""


def test_an_output_that_nobody_calls_backward_on(tmp_path: Path) -> None:
    """Ones, random, row by row: each row of the Jacobian is one pass."""
    script = tmp_path / "output.py"
    script.write_text(OUTPUT)
    refused = step(script)
    rows = step(script, "watch a", "c", "c", "c", options=("--grad-output", "rows"))
    ones = step(script, "watch a", "c", "c", options=("--grad-output", "ones", "--root", "y"))
    twice = [step(script, "watch a", "c", "c", options=("--grad-output", "random")).stdout for _ in range(2)]

    assert refused.returncode == 2
    assert "The output 'y' (f32[2]) is not a scalar" in refused.stderr
    assert "Backward starts with a gradient of 1 at [1], 0 elsewhere: row 2 of 2." in rows.stdout
    assert "[[2, 0]" in rows.stdout
    assert "[[0, 4]" in rows.stdout
    assert "[[2, 4]" in ones.stdout
    assert rows.stdout.endswith("2 leaf gradients compared with the sums of these steps: bit-equal.\n")
    assert twice[0] == twice[1]


def test_a_graph_that_was_used_up(tmp_path: Path) -> None:
    """The backward call that did it is named, with its line."""
    script = tmp_path / "twice.py"
    script.write_text(
        "import torch\na = torch.ones(3, requires_grad=True)\nh = a.exp()\nloss = h.sum()\nloss.backward()\n"
    )
    at_end = step(script, options=("--at", "end", "--root", "loss"))
    script.write_text(script.read_text() + "(h * h).sum().backward()\n")
    second = step(script, options=("--backward", "2"))

    assert at_end.returncode == 2
    assert at_end.stderr == (
        "gradinspect: Backward from 'loss' (f32[]) fails: The saved tensors of #1 ExpBackward0 were freed by backward "
        "#1 (twice.py:5), so backward cannot run it again.\n"
    )
    assert second.returncode == 3
    assert "were freed by backward #1 (twice.py:5)" in " ".join(second.stdout.split())
    assert "second time" in second.stderr


@pytest.mark.parametrize("options", [(), ("--backward", "1", "--continue")])
def test_a_call_that_fails_in_a_program_that_goes_on(options: tuple[str, ...], tmp_path: Path) -> None:
    """It is not taken for a program without a graph, and no other graph is stepped through in its place."""
    (tmp_path / "fails.py").write_text("""\
import torch
x = torch.ones(2, requires_grad=True)
y = x.exp()
x.register_hook(lambda _: 1 / 0)
try:
    y.sum().backward(retain_graph=True)
except ZeroDivisionError:
    print("caught")
""")
    run = step(tmp_path / "fails.py", "c", options=options)

    assert run.returncode == 2
    assert "caught" in run.stdout
    assert "backward #1 of 'fails.py' failed, so its steps did not end. Choose a later one" in " ".join(
        run.stderr.split()
    )


def test_a_change_in_place_is_said_before_it_fails(tmp_path: Path) -> None:
    """The node, its line and the versions; then torch's own error."""
    script = tmp_path / "stale.py"
    script.write_text(
        "import torch\na = torch.ones(3, requires_grad=True)\nh = a.exp()\nloss = h.sum()\nh.add_(1)\nloss.backward()\n"
    )
    done = step(script)

    assert done.returncode == 3
    assert "#1 ExpBackward0 (stale.py:3) will fail: a tensor it saved was modified in place" in done.stdout
    assert "modified by an inplace operation" in done.stderr


def test_no_scalar_and_no_graph(tmp_path: Path) -> None:
    """Torch's error gets a remedy; a script without a graph gets a sentence."""
    script = tmp_path / "vector.py"
    script.write_text("import torch\na = torch.ones(3, requires_grad=True)\n(a * a).backward()\n")
    vector = step(script)
    script.write_text("import torch\nprint(torch.ones(3).sum())\n")
    nothing = step(script)

    assert vector.returncode == 3
    assert vector.stderr.endswith("Reduce that output to a scalar first, or pass backward a gradient of its shape.\n")
    assert nothing.returncode == 2
    assert "never calls backward" in nothing.stderr


def test_a_capture_file_has_no_values(product: Path, tmp_path: Path) -> None:
    """There is nothing to run."""
    gradinspect("export", product, "-o", tmp_path / "run.json")
    done = gradinspect("step", tmp_path / "run.json")

    assert done.returncode == 2
    assert done.stderr == (
        "gradinspect: 'run.json' is a capture of one moment: it can't be stepped through. Give a program to run.\n"
    )


@pytest.mark.slow
def test_at_a_terminal(product: Path) -> None:
    """A prompt, an empty line is a step, the end of input leaves."""
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "gradinspect", "step", str(product)]
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True,
        env={**os.environ, "COLUMNS": "80", "TERM": "dumb"},
    )  # fmt: skip
    os.close(terminal)
    seen = ""
    for line in ("s\n", "\n", "\x04"):
        seen += _read_until(master, "(step) ")
        os.write(master, line.encode())
    seen += _read_until(master, "compared.")
    process.wait(timeout=300)
    os.close(master)

    assert "#0 SumBackward0" in seen
    assert "#1 MulBackward0" in seen
    assert "Stopped after 2 steps; nothing was compared: 'continue' goes to the end." in seen
    assert process.returncode == 0


def _read_until(descriptor: int, text: str) -> str:
    """Read what a terminal shows until it shows a text."""
    seen = b""
    end = time.monotonic() + 300
    while text.encode() not in seen and time.monotonic() < end:
        try:
            seen += os.read(descriptor, 4096)
        except OSError:
            break
    return seen.decode(errors="replace")
