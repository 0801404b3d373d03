"""Programs in which torch.compile was or is wrong: `diff --compiled` agrees with what each of them finds itself.

Which torch is wrong differs between versions, so the witness is the program, which computes both in one process.
"""

import shutil
from pathlib import Path

import pytest
from runs import gradinspect, python

BUGS = {
    # pytorch/pytorch issue 179804: backward of code that turns autocast off inside of compiled code
    "autocast": """
import torch
torch.manual_seed(0)
weight = torch.randn(64, 64, requires_grad=True)
data = torch.randn(4, 64, dtype=torch.bfloat16)
def of(data, weight):
    with torch.autocast("cpu", enabled=False):
        return data.float() @ weight.T
def loss_of(function):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = function(data, weight)
    return found.square().sum()
compiled, leaf = torch.compile(of, backend="aot_eager"), weight
""",
    # pytorch/pytorch issue 136662: torch.func.grad of code that writes into a view
    "written view": """
import torch
torch.manual_seed(0)
leaf = torch.randn(2, 3, requires_grad=True)
def of(x):
    def written(x):
        y = x.clone()
        y[:, 0] += x[:, 2].abs()
        return y.sum()
    return torch.func.grad(written)(x) * x
def loss_of(function):
    return function(leaf).square().sum()
compiled = torch.compile(of)
""",
    # pytorch/pytorch issue 180164: the gradient of what is written over in part
    "slice_scatter": """
import torch
torch.manual_seed(0)
leaf, other = torch.randn(4, 13, 33, requires_grad=True), torch.randn(4, 6, 33)
def of(x, y):
    return torch.slice_scatter(x, y, dim=1, start=0, end=6).sum(dim=1)
def loss_of(function):
    return function(leaf, other).sum()
compiled = torch.compile(of)
""",
}
WITNESS = """
gradients = []
for function in (of, compiled):
    leaf.grad = None
    loss_of(function).backward()
    gradients.append(leaf.grad.double())
print("off by", float((gradients[0] - gradients[1]).norm() / gradients[0].norm()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_the_verdict_is_that_of_the_program_itself(tmp_path: Path, name: str) -> None:
    """Wrong where it is wrong, and clean where it is not."""
    if "backend" not in BUGS[name] and shutil.which("g++") is None:
        pytest.skip("inductor needs a compiler")
    witness, path = tmp_path / "witness.py", tmp_path / "train.py"
    witness.write_text(BUGS[name] + WITNESS)
    path.write_text(BUGS[name] + "loss_of(compiled).backward()\n")
    said = python(witness, is_measured=False)
    done = gradinspect("diff", "--compiled", path, is_measured=False)

    assert said.returncode == 0, said.stderr
    assert done.returncode == int(float(said.stdout.rpartition(" ")[2]) > 1e-4), said.stdout + done.stdout + done.stderr
