"""Programs in which torch.compile was or is wrong: `diff --compiled` agrees with what each of them finds itself.

Which torch is wrong differs between versions, so the witness is the program, which computes both in one process.
"""

import re
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
    # pytorch/pytorch issue 182012: the same of a diagonal
    "diagonal_scatter": """
import torch
torch.manual_seed(0)
leaf, other = torch.randn(6, 9, requires_grad=True), torch.randn(6)
def of(x, y):
    return (torch.diagonal_scatter(x, y, 2) * 3).sum()
def loss_of(function):
    return function(leaf, other)
compiled = torch.compile(of)
""",
    # pytorch/pytorch issue 183986: rows of a tensor whose rows are one and the same memory
    "expanded": """
import torch
torch.manual_seed(0)
leaf, weights, rows = torch.randn(3, 8, requires_grad=True), torch.randn(4, 8), torch.tensor([0, 1, 0])
def of(src):
    return torch.zeros(1, 8).expand(4, -1).index_add(0, rows, src)
def loss_of(function):
    return (function(leaf).square() * weights).sum()
compiled = torch.compile(of)
""",
    # pytorch/pytorch issue 183604: one tensor as two arguments of a custom Function
    "twice": """
import torch
torch.manual_seed(0)
class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b + a + b
    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient * (b + 1), gradient * (a + 1)
leaf = torch.randn(5, requires_grad=True)
def of(x):
    return Both.apply(x, x).sum()
def loss_of(function):
    return function(leaf)
compiled = torch.compile(of, backend="aot_eager")
""",
    # pytorch/pytorch issue 185509: a gradient that inductor computes in a fused loop
    "pooled": """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
data, leaf = torch.randn(2, 3, 6, 7), torch.randn(4, 3, 3, 3, requires_grad=True)
def of(x, weight):
    y = F.interpolate(x, scale_factor=(1.5, 1.25), mode="bilinear", align_corners=False)[:, :, 1:7, 1:8]
    found = F.conv2d(y, weight, None, padding=1)
    largest = F.max_pool2d(found, kernel_size=3, stride=1, padding=1)
    return torch.where(found > largest.mean(dim=(2, 3), keepdim=True), found, largest)
def loss_of(function):
    return function(data, leaf).square().mean()
compiled = torch.compile(of)
""",
    # pytorch/pytorch issue 193279: the backward of a custom Function is dropped under torch.func.grad
    "dropped backward": """
import torch
torch.manual_seed(0)
class Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sin(x)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * x
leaf, data = torch.randn(5, requires_grad=True), torch.randn(5)
def of(x, weight):
    return torch.func.grad(lambda x, weight: Sine.apply(x * weight).sum())(x, weight)
def loss_of(function):
    return function(data, leaf).square().sum()
compiled = torch.compile(of, backend="aot_eager")
""",
    # pytorch/pytorch issue 176854: detach_() in compiled code
    "detached": """
import torch
torch.manual_seed(0)
leaf, data = torch.randn(4, requires_grad=True), torch.randn(3, 4)
def of(x):
    y = x * leaf
    y.detach_()
    return y * leaf
def loss_of(function):
    return function(data).square().sum()
compiled = torch.compile(of, backend="aot_eager")
""",
    # pytorch/pytorch issue 198102: a write into windows with gaps between them
    "gapped windows": """
import torch
torch.manual_seed(0)
leaf = torch.randn(4, 6, requires_grad=True)
def of(x):
    x = x * 1
    x.unfold(1, 1, 5).mul_(2)
    return x
def loss_of(function):
    return function(leaf).square().sum()
compiled = torch.compile(of, backend="aot_eager")
""",
    # pytorch/pytorch issue 180642: a custom Function that writes into what it returns
    "written result": """
import torch
torch.manual_seed(0)
class Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        y = x * weight
        y += 1
        return y
    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient * weight, gradient * x
leaf, data = torch.randn(5, requires_grad=True), torch.randn(5)
def of(x):
    return Shifted.apply(data, x).square().sum()
def loss_of(function):
    return function(leaf)
compiled = torch.compile(of, backend="aot_eager")
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
    if done.returncode:
        assert "It goes wrong " in done.stdout
        assert re.search(r"First wrong .*, train\.py:\d+|The line (in it )?is not known", " ".join(done.stdout.split()))


# pytorch/pytorch issues 190758 and 190717: under a budget, dropout is computed again with other random numbers
DRAWN_AGAIN = """
import torch, torch._functorch.config
from torch import nn
torch._functorch.config.activation_memory_budget = BUDGET
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 64)
    def forward(self, x):
        x = nn.functional.gelu(self.up(x))
        return DRAW
net = torch.compile(nn.Sequential(Block(), Block(), nn.Linear(64, 8)), backend="aot_eager")
x = torch.randn(32, 64)
net(x).square().mean().backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "budget", "operator"),
    [
        ("nn.functional.dropout(x, 0.5)", 0.3, "native_dropout in the backward of dropout"),
        ("nn.functional.dropout(x, 0.5)", 0, "native_dropout in the backward of dropout"),
        ("x + torch.randn_like(x) * x", 0, "randn_like in the backward of randn_like"),
    ],
)
def test_the_partitioner_is_named(tmp_path: Path, draw: str, budget: float, operator: str) -> None:
    """Where it is wrong: with the partitioner that computes nothing again, gradients are those of eager.

    So are the operator that draws again, and its line.
    """
    path = tmp_path / "train.py"
    path.write_text(DRAWN_AGAIN.replace("DRAW", draw).replace("BUDGET", str(budget)))
    done = gradinspect("diff", "--compiled", path, is_measured=False)
    said = " ".join(done.stdout.split())

    if done.returncode == 0:
        pytest.skip("this torch does not draw them again")
    assert done.returncode == 1, done.stderr
    assert "It goes wrong with backend aot_eager: the partitioner of AOTAutograd" in said
    assert "It is right with eager, aot_eager_default_partitioner." in said
    assert f"First drawn again: aten.{operator} of 0, train.py:11. Backward gets other random numbers" in said
    assert "The line is not known" not in said


# pytorch/pytorch issue 181581: a graph of gradients of compiled code, which lost it without a word and now refuses it
SECOND_ORDER = {
    "inside of it": """
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
@torch.compile(backend="aot_eager")
def penalty(x):
    gradient, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()
penalty(torch.randn(8, 4, requires_grad=True)).backward()
""",
    "of its result": """
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.randn(8, 4, requires_grad=True)
found = torch.compile(net, backend="aot_eager")(x)
gradient, = torch.autograd.grad(found.sum(), x, create_graph=True)
(found.square().mean() + (gradient.norm(dim=1) - 1).square().mean()).backward()
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SECOND_ORDER)
def test_a_program_that_fails_compiled_has_its_own_traceback_alone(tmp_path: Path, kind: str) -> None:
    """It was run before, and fails again; nothing says that it failed while an error of ours was handled."""
    path = tmp_path / "train.py"
    path.write_text(SECOND_ORDER[kind])
    plain = python(path, is_measured=False)
    if not plain.returncode:
        pytest.skip("this torch does not refuse it")
    done = gradinspect("diff", "--compiled", path, is_measured=False)

    assert done.returncode == 3
    assert "does not currently support double backward" in done.stderr
    assert "The script failed with RuntimeError" in done.stderr
    assert "During handling" not in done.stderr


# pytorch/pytorch issue 197887: a view that compiled code saves has no version, so a write into it is not seen
UNSEEN_WRITE = """
import torch
weight, data = torch.randn(4, 4, requires_grad=True), torch.randn(2, 4, 4)
loss = torch.compile(lambda x: x @ weight)(data).square().sum()
data.add_(1)
loss.backward()
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler")
def test_a_mistake_that_only_eager_refuses_is_found(tmp_path: Path) -> None:
    """With the backend that does not see it; the program itself, compiled, ends well."""
    path = tmp_path / "train.py"
    path.write_text(UNSEEN_WRITE)
    if python(path, is_measured=False).returncode:
        pytest.skip("this torch sees it")
    done = gradinspect("check", "--compiled", path, is_measured=False)
    said = " ".join(done.stdout.split())

    assert done.returncode == 1, done.stderr
    assert "GI251" in said
    assert "In eager: The script failed with RuntimeError after 1 backward call." in said
    assert "It goes on with inductor, the backend itself." in said
    assert "gradinspect check --eager looks for the mistake." in said
