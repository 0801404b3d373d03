"""A backward inside a function under torch.compile is recorded, and torch.compile does what it would do without us."""

from pathlib import Path

import pytest
from runs import gradinspect, python
from turns import one_in

PROGRAM = """
import torch
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="eager")
def train_step(x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
losses = [train_step(torch.randn(2, 4)).item().hex() for _ in range(3)]
print(losses, sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"], flush=True)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose whole training step is compiled."""
    script = tmp_path_factory.mktemp("compiled") / "compiled_step.py"
    script.write_text(PROGRAM)
    return script


def test_a_compiled_step_is_seen(program: Path) -> None:
    """Its backward is recorded, with the line that calls it and the names of the parameters."""
    done = gradinspect("trace", program)

    assert done.returncode == 0, done.stderr
    assert "backward #1  compiled_step.py:10  loss.backward()" in done.stdout
    assert "◆ 0.weight" in done.stdout


@pytest.mark.parametrize("words", one_in(2, [["trace"], ["memory", "--iterations", "2"]]))
def test_a_compiled_step_is_as_without_us(program: Path, words: list[str]) -> None:
    """As many graphs and graph breaks, no warning, and losses that are bit-equal."""
    verb, *options = words
    plain = python(program)
    done = gradinspect(verb, program, *options, "--continue")

    assert done.returncode == 0, done.stderr
    assert _untimed(done.stderr) == _untimed(plain.stderr)
    assert done.stdout.startswith(plain.stdout)
    assert "compiled_step.py:10" in done.stdout


def _untimed(log: str) -> list[str]:
    """Remove time and process from the lines of torch's own log."""
    return [line.partition("]")[2] if line[1:5].isdigit() else line for line in log.splitlines()]
