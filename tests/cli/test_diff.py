"""`gradinspect diff`: two graphs, or many."""

import gzip
import html
import json
from pathlib import Path

import pytest
from changed_programs import changed_graph
from factories import two_layers
from msgspec.structs import replace
from runs import gradinspect

from gradinspect.cli import main
from gradinspect.graph import CapturePoint, Frame
from gradinspect.storage import encode_graph

PROGRAM = """\
import sys, torch
print("running", *sys.argv[1:])
x = torch.ones(3, requires_grad=True)
y = x.exp() if "exp" in sys.argv else x.sin()
if "fail" in sys.argv:
    raise ValueError("broken")
if "long" in sys.argv:
    y = y * 2
y.sum().backward()
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures of the network and of changed ones, in the folder where the command runs, at 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("train.py").write_text(PROGRAM)


def write(name: str, *changes: str) -> str:
    """Write the capture of a changed network."""
    graph = changed_graph(*changes)
    frames = (*graph.frames, Frame(file="train.py", line=9, code="loss.backward()"))
    point = CapturePoint(kind="backward", number=1, frame=len(graph.frames))
    graph = replace(graph, frames=frames, captured_at=point)
    Path(name).write_bytes(encode_graph(graph, compressed=name.endswith(".gz")))
    return name


def test_two_captures(capsys: pytest.CaptureFixture[str]) -> None:
    """The figures, the changes by module, and one line that sums up; the exit code says that they differ."""
    code = main(["diff", write("a.json"), write("b.json.gz", "clone")])
    printed = capsys.readouterr().out

    assert code == 1
    assert max(map(len, printed.splitlines())) <= 80
    assert (
        printed
        == """\
A  a.json  backward #1  train.py:9  loss.backward()
B  b.json.gz  backward #1  train.py:9  loss.backward()

                   A           B        change
nodes             74          78            +4
edges             78          82            +4
leaves            30          30
held         4.8 KiB     4.8 KiB

h.0-3
  + CloneBackward0 ×4  f32[5, 16]                         …hanged_programs.py:27

4 nodes added.
"""
    )


def test_equal_captures(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and the last line says it."""
    assert main(["diff", write("a.json"), write("b.json")]) == 0
    assert capsys.readouterr().out.endswith("\nNo difference.\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fail-on", "bytes>5%"], 0),
        (["--fail-on", "bytes>5%", "--fail-on", "lost-gradient"], 1),
        (["--ignore", "bytes,lines,order"], 1),
    ],
)
def test_gates(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """With conditions, only they decide; what failed is said."""
    assert main(["diff", write("a.json"), write("b.json", "frozen"), *words]) == code
    assert ("failed  lost-gradient: h.1.attn.weight" in capsys.readouterr().out) == ("lost-gradient" in words)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """It has everything, with the nodes of each row."""
    main(["diff", write("a.json"), write("b.json", "fewer"), "--format", "json", "--fail-on", "removed"])
    found = json.loads(capsys.readouterr().out)

    assert (found["is_same"], found["failed"]) == (False, ["removed: 9 nodes"])
    assert found["nodes"] == {"before": 74, "after": 59, "change": -15}
    assert [len(row["nodes_before"]) for row in found["rows"]] == [9]
    assert {change["name"] for change in found["leaf_changes"]} == {
        f"h.3.{name}.{kind}" for name in ("ln", "attn", "mlp") for kind in ("weight", "bias")
    }


def test_markdown_and_annotations(capsys: pytest.CaptureFixture[str]) -> None:
    """A comment for a pull request, and annotations at its lines."""
    files = [write("a.json"), write("b.json", "sigmoid")]
    main(["diff", *files, "--format", "markdown"])
    comment = capsys.readouterr().out
    main(["diff", *files, "--format", "github", "--fail-on", "operator"])
    annotations = capsys.readouterr().out.splitlines()

    assert "| `h.0-3` | ~ | `ReluBackward0` ×4 `operator: ReluBackward0 → SigmoidBackward0` |" in comment
    assert annotations[0] == "::error title=gradinspect diff::operator: 4 nodes"
    assert annotations[1].startswith(
        "::notice file=tests/changed_programs.py,line=30,title=gradinspect diff::h.0-3: ~ "
    )


def test_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    """What was added, removed or changed says so beside its color, so that it can be read in black and white."""
    code = main(["diff", write("a.json"), write("b.json", "copy", "fewer"), "-o", "changes.svg"])
    drawn = html.unescape(Path("changes.svg").read_text())

    assert code == 1
    assert capsys.readouterr().err == (
        "changes.svg: 6 blocks closed; leaves inside are counted, not drawn\nWrote changes.svg\n"
    )
    assert all(words in drawn for words in ("+ added", "- removed", "~ changed", "color: change from A to B"))


def test_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """Both graphs side by side, with the gates that failed; other files are refused before anything is read."""
    code = main(["diff", write("a.json"), write("b.json", "fewer"), "-o", "diff.html", "--fail-on", "lost-gradient"])
    written = Path("diff.html").read_text()

    assert code == 1
    assert capsys.readouterr().err == "Wrote diff.html\n"
    assert "<title>a.json → b.json · gradinspect</title>" in written
    assert '"failures":["lost-gradient: h.3.' in written
    assert main(["diff", "a.json", "b.json", "-o", "diff.csv"]) == 2
    assert "'diff.csv' is neither a page nor a picture." in capsys.readouterr().err


def test_many_captures(capsys: pytest.CaptureFixture[str]) -> None:
    """Equal ranks are one group; each other one says what it lacks."""
    ranks = [write(f"run.{rank}.json", *(["fewer"] if rank == 2 else [])) for rank in range(4)]
    code = main(["diff", *ranks])
    lines = capsys.readouterr().out.splitlines()

    assert code == 1
    assert lines[0] == "ranks 0-1, 3 are equal, 3 captures of 4"
    assert lines[2].startswith("rank 2 differs: 9 nodes removed, 6 leaves without a gradient now")
    assert " ".join(lines).count("has no h.3") == 1
    assert "  missing here: h.3  Block" in lines
    assert "  no gradient reaches: h.3.* ×6" in lines
    assert "   4.8 KiB held  ranks 0-1, 3" in lines
    assert "   3.9 KiB held  rank 2" in lines
    assert main(["diff", *ranks[:2], ranks[3]]) == 0
    assert main(["diff", *ranks, "--format", "json"]) == 1


@pytest.mark.parametrize("count", [2, 4])
def test_each_rank_has_a_device_of_its_own(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Its number is no difference between ranks, and is one between other captures."""
    for rank in range(count):
        text = Path(write("a.json")).read_text()
        for name in (f"run.{rank}.json", f"{'abcd'[rank]}other.json"):
            Path(name).write_text(text.replace('"device":"cpu"', f'"device":"cuda:{rank}"'))

    assert main(["diff", *(f"run.{rank}.json" for rank in range(count))]) == 0
    assert main(["diff", *(f"{letter}other.json" for letter in "abcd"[:count])]) == 1
    assert "cuda:0" in capsys.readouterr().out


def test_each_rank_writes_a_file_of_its_own() -> None:
    """`{rank}` in a name is the rank; without a job it is 0."""
    written = [gradinspect("export", "train.py", "-o", "run.{rank}.json", RANK="3")]
    written.append(gradinspect("export", "train.py", "-o", "run.{rank}.json"))

    assert [done.stderr for done in written] == ["Wrote run.3.json\n", "Wrote run.0.json\n"]
    assert main(["diff", "run.0.json", "run.3.json"]) == 0


@pytest.mark.slow
def test_programs_run_apart_and_print_as_they_would() -> None:
    """Each in a process of its own, with its own arguments; captures and programs can be mixed."""
    done = gradinspect("diff", "--both", "train.py", "train.py -- exp long")
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (1, "")
    assert lines[:2] == ["running", "running exp long"]
    assert "      operator: SinBackward0 → ExpBackward0" in lines
    assert ["+", "MulBackward0", "f32[3]", "+8", "B", "train.py:8"] in map(str.split, lines)


@pytest.mark.slow
def test_a_program_that_fails() -> None:
    """Its traceback, one sentence, and exit code 3; the other one is not run."""
    done = gradinspect("diff", "--both", "train.py -- fail", "train.py -- never")

    assert done.returncode == 3
    assert done.stdout == "running fail\n"
    assert done.stderr.endswith(
        "ValueError: broken\ngradinspect: The script failed before any backward call: ValueError.\n"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["a.json"], "Two sources are compared, and only 'a.json' was given. "),
        ([], "Two sources are compared, and none was given. "),
        (["a.json", "missing.json"], "The file 'missing.json' does not exist. "),
        (["a.json", "broken.json"], 'Capture file "broken.json" is broken: it is truncated. '),
        (["a.json", "a.json", "newer.json"], 'Capture file "newer.json" has schema version 99, newer than '),
        (["a.json", "other.json"], "'a.json' and 'other.json' have no module in common. "),
        (["a.json", "a.json", "other.json"], "'a.json' and 'other.json' have no module in common. "),
        (["a.json", "a.json", "--ignore", "colors"], "'--ignore colors' is not a kind of difference. Available: bytes"),
        (["a.json", "a.json", "--fail-on", "more"], "'--fail-on more' is not a known condition. Write 'bytes>5%', "),
        (["a.json", "a.json", "--backward", "2"], "'--backward' is about running a program, and all sources are "),
        (["a.json", "--both", "a.json", "a.json"], "'a.json' and '--both' cannot be combined. "),
        (["--both", "train.py --amp", "a.json"], "'train.py --amp' has no option '--amp'. Options of the script"),
        (["--both", "train.py 'amp", "a.json"], "The quotes in 'train.py 'amp' do not match. "),
        (["--both", "", "a.json"], "A SOURCE or -m MODULE is needed, and neither was given. "),
        (
            ["a.json", "a.json", "a.json", "--format", "github"],
            "'--format github' is for two sources, and 3 were given",
        ),
    ],
)
def test_one_sentence_for_each_mistake(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the file or option in question, and nothing else is printed."""
    write("a.json")
    Path("broken.json").write_bytes(encode_graph(two_layers(), compressed=False)[:500])
    Path("newer.json").write_bytes(
        encode_graph(two_layers(), compressed=False).replace(b'"version":1', b'"version":99')
    )
    Path("other.json").write_bytes(encode_graph(two_layers(), compressed=False))
    code = main(["diff", *words])
    captured = capsys.readouterr()

    assert (code, captured.out) == (2, "")
    assert captured.err.startswith(f"gradinspect: {problem}")
    assert captured.err.count("\n") == 1


def test_a_golden_file_is_small_and_the_same_each_time() -> None:
    """The packed capture of a repeated network, byte for byte."""
    first, second = (encode_graph(changed_graph(), compressed=True) for _ in range(2))

    assert first == second
    assert len(first) < 6_000
    assert gzip.decompress(first) == encode_graph(changed_graph(), compressed=False)


GAN = """\
import sys, torch
from torch import nn
wide = "wide" in sys.argv
critic, maker = nn.Linear(4, 1), nn.Sequential(nn.Linear(3, 4), *([nn.Tanh()] if wide else []))
steps = torch.optim.RMSprop(critic.parameters()), torch.optim.RMSprop(maker.parameters())
def learn(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for number in range(1, 9):
    made = maker(torch.randn(5, 3))
    learn(critic(made.detach()).mean() - critic(torch.randn(5, 4)).mean(), steps[0])
    if number % 3 == 0 and "alone" not in sys.argv:
        learn(-critic(made).mean(), steps[1])
print("end")
"""

CLOSURE = """\
import torch
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3)).square().sum()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
"""


@pytest.mark.slow
def test_all_calls_of_a_step_are_compared() -> None:
    """Also one that is made once in three times, through the same function; the program then ends."""
    Path("gan.py").write_text(GAN)
    done = gradinspect("diff", "--both", "gan.py", "gan.py -- wide")

    assert done.returncode == 1
    assert "end" not in done.stdout + done.stderr
    assert "A  gan.py  backward #1  gan.py:8  loss.backward()\n" in done.stdout
    assert "B  gan.py -- wide  backward #4  gan.py:8  loss.backward()\n" in done.stdout
    assert "+ Tanh" in done.stdout
    assert done.stdout.endswith("\nbackward #4 differs, backward #1 is equal.\n")


@pytest.mark.slow
def test_all_calls_as_json() -> None:
    """Every call, and at the top the first that differs."""
    Path("gan.py").write_text(GAN)
    done = gradinspect("diff", "--both", "gan.py", "gan.py -- wide", "--format", "json")
    found = json.loads(done.stdout)

    assert found["is_same"] is False
    assert [call["is_same"] for call in found["calls"]] == [True, False]
    assert found["after"]["captured_at"].startswith("backward #4")


@pytest.mark.slow
def test_a_call_that_only_one_of_them_makes() -> None:
    """It is a difference."""
    Path("gan.py").write_text(GAN)
    done = gradinspect("diff", "--both", "gan.py", "gan.py -- alone")

    assert done.returncode == 1
    assert "Only A has a call like backward #4 gan.py:8 loss.backward()." in done.stdout
    assert done.stdout.endswith("\nbackward #1 compared: no difference in what both have.\n")


@pytest.mark.slow
def test_a_closure_is_one_call() -> None:
    """Though torch calls it on several lines of its own."""
    Path("closure.py").write_text(CLOSURE)
    done = gradinspect("diff", "closure.py", "closure.py")

    assert done.returncode == 0
    assert done.stdout.endswith("\n\nNo difference.\n")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("run.json", "gan.py"), ("gan.py", "gan.py", "--backward", "2")])
def test_where_one_call_is_compared_that_is_said(words: tuple[str, ...]) -> None:
    """A capture file has one, and one was asked for."""
    Path("gan.py").write_text(GAN)
    gradinspect("export", "gan.py", "-o", "run.json")
    done = gradinspect("diff", *words)

    assert done.returncode == 0
    assert done.stderr == "Only this call was compared.\n"


CALLED = """\
import sys, torch
cell = torch.nn.Linear(4, 4)
x = torch.randn(2, 4)
for _ in range(2 if "short" in sys.argv else 3):
    x = cell(x)
x.sum().backward()
"""


def compared_first_calls(program: str, option: str) -> str:
    """Compare the first graphs of a program without an option and with it, from files: quicker than two programs."""
    Path("a_training_program.py").write_text(program)
    gradinspect("export", "a_training_program.py", "-o", "a.json")
    gradinspect("export", "a_training_program.py", "-o", "b.json", "--", option)
    return gradinspect("diff", "--both", "a.json", "b.json").stdout


def test_a_module_that_is_called_less_often_is_in_both() -> None:
    """Only its calls are gone; it is not said to be in one program only."""
    screen = compared_first_calls(CALLED, "short")

    assert "- Linear  2 nodes" in screen
    assert "only in A" not in screen
    assert "module" not in screen


TWICE = """\
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.SiLU() if "silu" in sys.argv else torch.nn.ReLU())
def output():
    return model(torch.randn(2, 4))
output().sum().backward()
output().mean().backward()
"""


@pytest.mark.slow
def test_the_same_changes_are_listed_once() -> None:
    """Of a later call that changed as an earlier one did, the figures and a reference are enough."""
    Path("gan.py").write_text(TWICE)
    done = gradinspect("diff", "--both", "gan.py", "gan.py -- silu")

    assert done.stdout.count("operator: ReluBackward0") == 1
    assert done.stdout.count("A  gan.py") == 2
    assert "\nThe same changes as in backward #1.\n" in done.stdout
    assert done.stdout.endswith("\nbackward #1 and #2 differ.\n")


GROUPED = """\
import sys, torch
x = torch.nn.Conv2d(3, 64, 3, padding=1)(torch.randn(4, 3, 64, 64))
batch_norm = torch.nn.functional.batch_norm
(torch.group_norm(x, 4) if "group" in sys.argv else batch_norm(x, None, None, training=True)).sum().backward()
"""


def test_a_class_is_not_cut_where_it_can_be_said_briefly() -> None:
    """Without Backward0, and in all rows alike."""
    screen = compared_first_calls(GROUPED, "group")

    assert "- NativeBatchNorm  f32[4, 64, 64, 64]" in screen
    assert "+ NativeGroupNorm  f32[4, 64, 64, 64]" in screen
    assert max(map(len, screen.splitlines())) <= 80
