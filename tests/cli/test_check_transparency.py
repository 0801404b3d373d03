"""Programs that could notice `gradinspect check`: each comes to the same with it as without it."""

from pathlib import Path

import pytest
from runs import gradinspect, python

PROGRAMS = sorted((Path(__file__).parent.parent / "check_programs" / "transparent").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_does_not_notice_check(script: Path) -> None:
    """What it prints, and how it ends, are the same."""
    plain = python(script)
    checked = gradinspect("check", script, "--continue", "--steps", "3")

    assert checked.stdout.startswith(plain.stdout)
    verdicts = ("No problems found in ", "Not checked")
    assert any(line.startswith(verdicts) for line in checked.stdout[len(plain.stdout) :].splitlines())
    assert "GI" not in checked.stdout[len(plain.stdout) :]
    assert without_timestamps(checked.stderr) == without_timestamps(plain.stderr)
    assert (checked.returncode, plain.returncode) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaves", "options"),
    [("loss.backward()", ()), ("torch.autograd.backward(loss)", ()), ("torch.autograd.grad(loss, w)", ("--grad", "1"))],
)
def test_nothing_stays_after_the_last_call(leaves: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """However backward is called, the very next line finds no mode."""
    script = tmp_path / "modes.py"
    script.write_text(
        "import torch\nw = torch.ones(3, requires_grad=True)\nloss = (w * 2).sum()\n"
        f"{leaves}\nprint(torch._C._len_torch_function_stack())\n"
        "print((w * 2).sum().item())\nprint(torch._C._len_torch_function_stack())\n"
    )
    checked = gradinspect("check", script, "--continue", "--steps", "1", *options)

    assert checked.stdout.splitlines()[:3] == ["0", "6.0", "0"]


def test_nothing_stays_after_a_call_that_failed(tmp_path: Path) -> None:
    """Torch keeps the frames of a failed backward as long as its error is held; then nothing is left."""
    script = tmp_path / "failed.py"
    script.write_text(
        "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny += 1\n"
        "try:\n    y.sum().backward()\nexcept RuntimeError:\n    print('caught')\nw.exp()\n"
        "print(torch._C._len_torch_function_stack(), torch.autograd._engine_run_backward.__module__)\n"
    )
    checked = gradinspect("check", script, "--continue", "--steps", "1")

    assert checked.stdout.startswith("caught\n0 torch.autograd.graph\nGI101")


def test_the_count_of_calls_is_that_of_those_watched(tmp_path: Path) -> None:
    """Of a program that fails after we have left it, it is said how many calls were observed."""
    script = tmp_path / "later.py"
    script.write_text(
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        "for _ in range(5):\n    (w * 2).sum().backward()\nraise ValueError('later')\n"
    )
    checked = gradinspect("check", script, "--continue", "--steps", "2")

    assert checked.stderr.endswith("failed with ValueError after the 2 backward calls that were observed.\n")


def without_timestamps(text: str) -> list[str]:
    """Leave out the lines that torch's profiler writes, with time and process."""
    return [line for line in text.splitlines() if not line.startswith("USDT:")]
