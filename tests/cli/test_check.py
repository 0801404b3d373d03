"""`gradinspect check` as a user types it: broken programs and their lines, clean ones, formats, codes."""

import json
import re
from pathlib import Path

import pytest
from check_expectations import declared_findings, options_of
from runs import gradinspect, python
from turns import one_in

PROGRAMS = Path(__file__).parent.parent / "check_programs"
BROKEN = sorted((PROGRAMS / "broken").glob("*.py"))
CLEAN = sorted((PROGRAMS / "clean").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", one_in(20, BROKEN), ids=lambda path: path.stem)
def test_a_broken_program_is_found_with_its_lines(script: Path) -> None:
    """Each finding that the program declares, with every line it names, and no other finding."""
    done = gradinspect("check", script, *options_of(script), "--format", "json")
    found = json.loads(done.stdout[done.stdout.index("{\n") :])["findings"]  # after what the program prints
    declared = declared_findings(script)
    lines = [{f"{place['role']}={place['line']}" for place in finding["places"]} for finding in found]

    assert [finding["code"] for finding in found] == [code for code, _ in declared]
    assert all(expected <= seen for (_, expected), seen in zip(declared, lines, strict=True))
    assert done.returncode == 1


_UNKNOWN = re.compile(
    "custom Functions? (?:not )?verified|was not checked: forward is a step|not measured: inside a torch.func"
)


@pytest.mark.slow
@pytest.mark.parametrize("script", one_in(8, CLEAN), ids=lambda path: path.stem)
def test_nothing_is_found_in_a_clean_program(script: Path) -> None:
    """Nothing is found, and every number it prints is the one that it prints by itself."""
    done = gradinspect("check", script, "--continue", "--steps", "3", *options_of(script))
    plain = python(script)

    assert done.returncode == plain.returncode == 0
    *printed, verdict = done.stdout.splitlines()
    assert verdict.startswith("No problems found in ")
    assert done.stdout.startswith(plain.stdout)
    notes = printed[len(plain.stdout.splitlines()) :]
    assert all(line.startswith(("Not checked", "Perhaps meant", "  ")) or _UNKNOWN.search(line) for line in notes)
    assert done.stderr == plain.stderr


GAN = """\
GI102  optimizer stepped between forward and backward
  saved     gan.py:13  score = D(fake)
  written   gan.py:18  opt_d.step()
  backward  gan.py:20  loss_g.backward()
  why       D.0.weight and D.2.weight, saved for backward at gan.py:13, were
            modified afterwards by opt_d.step(), so this backward will fail.
            (AddmmBackward0 saved version 1; now they are at version 2.)
  do        Compute gan.py:13 and what gan.py:14 makes of that again after
            opt_d.step() at gan.py:18. Or call opt_d.step() after
            loss_g.backward() at gan.py:20, if the gradients of both should
            update these weights.

1 finding in 2 backward calls of gan.py
"""


def test_the_whole_screen() -> None:
    """What was found, then the error that it explains, as torch raised it."""
    done = gradinspect("check", "gan.py", cwd=PROGRAMS / "broken")

    assert done.stdout == GAN
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "RuntimeError: one of the variables needed for gradient computation has been modified" in done.stderr
    assert done.stderr.endswith("gradinspect: The script failed with RuntimeError after 2 backward calls.\n")
    assert "gradinspect/" not in done.stderr.partition("RuntimeError:")[0].replace("check_programs", "")
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("columns", one_in(3, [40, 60, 200]))
def test_a_page_fits_any_width_and_alphabet(columns: int) -> None:
    """No line is wider than asked for, and an ASCII terminal gets ASCII."""
    done = gradinspect("check", PROGRAMS / "broken" / "gan.py", COLUMNS=str(columns), PYTHONIOENCODING="ascii")
    *page, _ = done.stdout.splitlines()

    assert all(len(line) <= columns for line in page)
    assert done.stdout.isascii()


def test_annotations_for_github() -> None:
    """One line a finding, beside the line that wrote; what separates its parts is escaped."""
    root = PROGRAMS.parent.parent
    done = gradinspect("check", "tests/check_programs/broken/gan.py", "--format", "github", cwd=root)
    (line,) = done.stdout.splitlines()

    assert line.startswith("::error file=tests/check_programs/broken/gan.py,line=18,title=GI102 optimizer stepped")
    assert "saved: tests/check_programs/broken/gan.py:13  score = D(fake)%0Awritten: " in line
    assert done.returncode == 1


def test_codes_choose(tmp_path: Path) -> None:
    """`--only` and `--skip`; without findings left, a script that fails is a script that fails."""
    script = PROGRAMS / "broken" / "inplace_exp.py"
    only = gradinspect("check", script, "--only", "gi102,GI103")
    skipped = gradinspect("check", script, "--skip", "GI1")
    unknown = gradinspect("check", script, "--only", "GI99")

    assert only.returncode == skipped.returncode == 3
    assert only.stdout.startswith("The program failed, and no problems found until then, in 1 backward call of ")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("gradinspect: No rule has the code 'GI99'. Closest matches: GI901 and GI902.")


def test_steps_are_backward_calls(tmp_path: Path) -> None:
    """The program is stopped after the last one that is watched; what comes later is not found."""
    script = tmp_path / "later.py"
    script.write_text(
        "import torch\nx = torch.ones(3, requires_grad=True)\nfor step in range(4):\n    y = x.exp()\n"
        "    if step == 2:\n        y += 1\n    print(step)\n    y.sum().backward()\n"
    )
    two = gradinspect("check", script, "--steps", "2")
    three = gradinspect("check", script)

    assert two.stdout == f"0\n1\nNo problems found in 2 backward calls of {script.name}\n"
    assert two.returncode == 0
    assert "GI101" in three.stdout
    assert three.returncode == 1


def test_a_program_may_survive_its_error(tmp_path: Path) -> None:
    """One that catches what torch raises goes on, and is found all the same."""
    script = tmp_path / "caught.py"
    script.write_text(
        "import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\n"
        "try:\n    y.sum().backward()\nexcept RuntimeError:\n    print('caught')\n"
    )
    done = gradinspect("check", script)

    assert done.stdout.startswith("caught\nGI101")
    assert (done.returncode, done.stderr) == (1, "")


def test_what_cannot_be_checked_is_one_sentence(tmp_path: Path) -> None:
    """No backward call, a capture file, fake tensors."""
    script = tmp_path / "none.py"
    script.write_text("import torch\n")
    none = gradinspect("check", script)
    fake = gradinspect("check", script, "--fake")

    assert (none.returncode, fake.returncode) == (2, 2)
    assert "never calls backward" in none.stderr
    assert "'check' has no option '--fake'." in fake.stderr


@pytest.mark.slow
def test_write_in_numpy_and_in_a_compiled_function_cost_nothing(tmp_path: Path) -> None:
    """torch.compile compiles one graph, as without us."""
    script = tmp_path / "compiled.py"
    script.write_text(
        "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(4, 4)\ncount = 0\n"
        "def backend(graph, _inputs):\n    global count\n    count += 1\n    return graph.forward\n"
        "run = torch.compile(lambda x: torch.relu(model(x)).mul(2), backend=backend)\n"
        "for _ in range(3):\n    run(torch.randn(2, 4)).sum().backward()\nprint(count)\n"
    )
    done = gradinspect("check", script, "--continue", "--steps", "3")

    assert done.stdout.splitlines()[0] == python(script).stdout.strip() == "1"
    assert done.returncode == 0


@pytest.mark.parametrize("code", ["GI101", "gi102"])
def test_a_code_is_explained(code: str) -> None:
    """What it means, a program that has it, what to do."""
    done = gradinspect("explain", code)

    assert done.stdout.startswith(f"{code.upper()}  ")
    assert ".backward()" in done.stdout
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_a_function_that_cannot_be_checked_is_named(tmp_path: Path) -> None:
    """With the reason, before the verdict; without --gradcheck, that it was not verified."""
    script = tmp_path / "noise.py"
    script.write_text(
        "import torch\nclass Noise(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x + torch.rand_like(x)\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        print('never seen')\n        return grad\n"
        "Noise.apply(torch.ones(3, requires_grad=True)).sum().backward()\nprint(torch.rand(1).item())\n"
    )
    plain = gradinspect("check", script, "--quiet-script")
    checked = gradinspect("check", script, "--quiet-script", "--gradcheck")

    verdict = "No problems found in 1 backward call of noise.py\n"
    assert plain.stdout == f"1 custom Function not verified (Noise): --gradcheck does.\n{verdict}"
    assert checked.stdout == f"Noise was not checked: its results differ from call to call.\n{verdict}"
    assert (checked.returncode, checked.stderr) == (0, "")
