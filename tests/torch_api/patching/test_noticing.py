"""Methods of torch whose calls are noticed."""

from pathlib import Path

import pytest
from runs import gradinspect

COMPILES = """\
import torch
from torch import nn

weight = torch.ones(2, requires_grad=True)
def compute(x):
    act = nn.ReLU()
    return (act(x) * weight).sum()
compiled = torch.compile(compute, backend="eager", fullgraph=True)
for _ in range(2):
    loss = compiled(torch.tensor([-1.0, 3.0]))
    loss.backward()
print("loss", loss.item())
"""


@pytest.mark.slow
def test_compiled_code_is_the_same_with_a_method_that_is_noticed(tmp_path: Path) -> None:
    """A module that is made in there is part of its one graph."""
    (tmp_path / "train.py").write_text(COMPILES)
    done = gradinspect("check", "train.py", cwd=tmp_path)

    assert done.stdout.startswith("loss 3.0")
    assert "failed" not in done.stderr
