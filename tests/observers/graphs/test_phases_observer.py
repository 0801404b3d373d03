"""The different backward calls of a step, each once."""

from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.observers.graphs.phases_observer import MOST_REPEATS

PROGRAM = """\
import sys, torch
model, spare = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
optimizers = [torch.optim.SGD(model.parameters(), 0.1)]
if "spare" in sys.argv:
    optimizers.append(torch.optim.SGD(spare.parameters(), 0.1))
if "frozen" in sys.argv:
    spare.requires_grad_(False)
number = 0
try:
    while number < 40:
        model(torch.ones(2, 3)).sum().backward()
        number += 1
        if number % 4 == 0 and "hand" not in sys.argv:
            optimizers[0].step()
finally:
    print("calls", number)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "calls"),
    [("", 4), ("spare frozen", 4), ("spare", MOST_REPEATS), ("hand", MOST_REPEATS)],
)
def test_a_step_has_ended(words: str, calls: int, tmp_path: Path) -> None:
    """When all optimizers with something to learn have stepped, or after a number of calls that are not new."""
    (tmp_path / "train.py").write_text(PROGRAM)
    line = f"train.py -- {words}".removesuffix(" -- ")
    done = gradinspect("diff", "--both", line, line, cwd=tmp_path)

    assert done.stdout.startswith(f"calls {calls}\ncalls {calls}\nA  train.py")
    assert done.returncode == 0
