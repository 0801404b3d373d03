"""Code that a tool has made may have no lines: Python's frames have none for it, and its traceback says None."""

from pathlib import Path

import pytest
from runs import gradinspect, python

pytestmark = pytest.mark.slow

WITHOUT_LINES = """
import torch, types
from torch import nn

def bare(function):
    code = function.__code__
    table = b"" if WITHOUT_TABLE else bytes([255]) * (len(code.co_code) // 16 + 1)  # 255: 8 instructions without a line
    return types.FunctionType(code.replace(co_linetable=table), function.__globals__, function.__name__)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@bare
def step(x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.item().hex()
"""
TRAINS = "for _ in range(3):\n    print(step(torch.randn(3, 4)))\n"
FAILS = TRAINS + "@bare\ndef refuse():\n    raise LookupError(3)\nrefuse()\n"
VERBS = ("", "check", "trace --continue", "grads --continue", "memory --continue", "step --continue --script c.txt")


@pytest.mark.parametrize("without_table", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_a_program_whose_code_has_no_lines(verb: str, without_table: bool, tmp_path: Path) -> None:
    """It is looked at as any other: each frame is named by the line at which its function begins."""
    script = tmp_path / "made.py"
    script.write_text(f"WITHOUT_TABLE = {without_table}\n{WITHOUT_LINES}{TRAINS}")
    (tmp_path / "c.txt").write_text("c\n")
    plain = python(script)
    done = gradinspect(*verb.split(), script, cwd=tmp_path)

    assert (plain.returncode, done.returncode, done.stderr) == (0, 0, "")
    assert [line for line in plain.stdout.splitlines() if line not in done.stdout] == []
    assert "Not looked at" not in done.stdout


@pytest.mark.parametrize("without_table", [True, False])
@pytest.mark.parametrize("verb", ["", "check", "trace --continue"])
def test_a_program_fails_in_code_that_has_no_lines(verb: str, without_table: bool, tmp_path: Path) -> None:
    """Its traceback is the one that Python prints, and the exit code says that the program failed."""
    script = tmp_path / "made.py"
    script.write_text(f"WITHOUT_TABLE = {without_table}\n{WITHOUT_LINES}{FAILS}")
    plain = python(script, is_measured=False)  # Python 3.11 crashes at its end where a tracer has seen such a table
    done = gradinspect(*verb.split(), script, cwd=tmp_path, is_measured=False)

    assert (plain.returncode, done.returncode) == (1, 3)
    assert ", in refuse" in plain.stderr
    assert plain.stderr[plain.stderr.index(f'  File "{script}"') :] in done.stderr
