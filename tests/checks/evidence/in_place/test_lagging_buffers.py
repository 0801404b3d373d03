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


def test_a_copy_that_is_called_once_per_epoch_is_looked_at_in_time(tmp_path: Path) -> None:
    """The first time after some calls, and few follow."""
    text = FOLLOWED.replace("DEVICE", "cpu").replace("range(9)", "range(24)").replace(" - average(x)", "")
    (tmp_path / "followed.py").write_text(text.replace("AFTER", "step % 9 or average(x)"))
    done = gradinspect("check", "followed.py", cwd=tmp_path)

    assert "GI385" in done.stdout


LIMITED = FOLLOWED.replace("torch.set_default_device", "#").replace("AFTER", "pass")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nn.BatchNorm1d(4))", "nn.BatchNorm1d(4), Wide())", "1 copy of a model, for its buffers, larger than"),
        (
            "x = torch",
            "loss, x = other(torch.ones(5, 4)).sum(), torch",
            "of which 2 are trained that it may be one of.",
        ),
        ("kept.lerp_(new, 0.1)", "pass", None),
    ],
    ids=["large", "two models", "follows nothing"],
)
def test_a_copy_that_is_not_compared_is_named(old: str, new: str, said: str | None, tmp_path: Path) -> None:
    """If it follows a model; what is frozen has nothing to follow."""
    head = """
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(1 << 20))
    def forward(self, x):
        return x
"""
    program = LIMITED.replace("model =", f"{head}model =").replace(
        "average =", "other = copy.deepcopy(model)\naverage ="
    )
    program = program.replace(old, new).replace(
        "loss = (", "loss = other(x).sum() + (" if "other(" in new else "loss = ("
    )
    (tmp_path / "followed.py").write_text(program)
    done = gradinspect("check", "followed.py", cwd=tmp_path)

    text = " ".join(done.stdout.split())
    assert (said or "No") in text
    assert ("copy of a model" in text) == (said is not None)
