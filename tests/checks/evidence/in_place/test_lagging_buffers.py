"""Copies that follow the parameters of a model and not its buffers, where there is nothing to compare."""

from pathlib import Path

import pytest
from runs import gradinspect

FOLLOWED = """
import copy, torch
from torch import nn
torch.set_default_device("DEVICE")
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(9):
    x = torch.randn(5, 4)
    loss = (model(x) - average(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    AFTER
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.lerp_(new, 0.1)
"""


@pytest.mark.parametrize(
    ("device", "after", "is_found"),
    [
        ("cpu", "pass", True),
        ("meta", "pass", False),
        ("cpu", "(model.double(), average.double(), torch.set_default_dtype(torch.float64))", False),
    ],
    ids=["values", "no values", "another dtype"],
)
def test_what_has_no_values_is_not_compared(device: str, after: str, tmp_path: Path, *, is_found: bool) -> None:
    """A meta tensor has none, and a buffer of another dtype is another one; neither is an error of ours."""
    (tmp_path / "followed.py").write_text(FOLLOWED.replace("DEVICE", device).replace("AFTER", after))
    done = gradinspect("check", "followed.py", cwd=tmp_path)

    assert ("GI385" in done.stdout) == is_found
    assert "Not looked at" not in done.stdout + done.stderr
