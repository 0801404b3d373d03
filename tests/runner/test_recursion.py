"""The program has its full recursion limit, regardless of our frames on the stack."""

from pathlib import Path

import pytest
from runs import gradinspect, python

pytestmark = pytest.mark.slow

VERBS = ("trace", "saved", "memory", "memory --iterations 2", "check", "grads", "step", "grads --timeline t.json")


@pytest.mark.parametrize("verb", VERBS)
def test_a_backward_far_down_the_stack(verb: str, tmp_path: Path) -> None:
    """A program gets as deep as under python, whatever its limit is, and finds its limit as it left it."""
    script = tmp_path / "deep.py"
    script.write_text(
        "import sys, torch\ndef deep(n):\n    if n: return deep(n - 1)\n"
        "    (torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "for limit in (sys.getrecursionlimit(), 1500, 60):\n"
        "    sys.setrecursionlimit(limit)\n    deep(limit - 17)\n    assert sys.getrecursionlimit() == limit\n"
        "import atexit\natexit.register(lambda: print(sys.getrecursionlimit(), deep(40)))\n"
        "def endless(n=0):\n    try: return endless(n + 1)\n    except RecursionError: return n\n"
        "print(50 < endless() < 200)\n"
        "try: sys.setrecursionlimit(1)\nexcept RecursionError as error: print(str(error)[:14])\n"
        "try: sys.setrecursionlimit(0)\nexcept ValueError as error: print(error, sys.getrecursionlimit())\n"
    )
    plain = python(script)
    done = gradinspect(*verb.split(), script, "--continue", cwd=tmp_path)

    assert plain.stdout == ("True\ncannot set the\nrecursion limit must be greater or equal than 1 60\n60 None\n")
    assert (done.returncode, done.stderr.replace("Wrote t.json\n", "")) == (0, "")
    assert plain.stdout.removesuffix("60 None\n") in done.stdout  # step prints before it
    assert done.stdout.endswith("60 None\n")
    assert "Mul" in done.stdout or "No problems found" in done.stdout or verb not in {"trace", "check"}


DEEP = """
import sys, torch
from torch.utils.checkpoint import checkpoint

class Itself(torch.nn.Module):
    def forward(self, x, n):
        return self(x, n - 1) if n else x * 2

class Applied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        return Applied.apply(x, n - 1) if n else x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient, None

def checkpointed(x, n):
    return checkpoint(checkpointed, x, n - 1, use_reentrant=True) if n else x * 2

def deepest(function):
    n = 1
    while True:
        try:
            function(torch.ones(2, requires_grad=True), n).sum()
        except RecursionError:
            return n
        n += 1

sys.setrecursionlimit(300)
for function in (Itself(), Applied.apply, checkpointed):
    print(deepest(function))
torch.ones(2, requires_grad=True).sum().backward()
"""


@pytest.mark.parametrize("verb", ["trace", "check", "grads", "fit --real"])
def test_what_calls_itself_through_torch_gets_as_deep(verb: str, tmp_path: Path) -> None:
    """Modules, custom Functions and checkpoints: of each call, one frame may be ours."""
    script = tmp_path / "itself.py"
    script.write_text(DEEP)
    depths = [int(line) for line in python(script).stdout.split()]
    done = gradinspect(*verb.split(), script, "--continue", cwd=tmp_path)
    reached = [int(line) for line in done.stdout.splitlines()[: len(depths)]]

    assert all(plain <= ours for plain, ours in zip(depths, reached, strict=True))


ENDLESS = """
import sys
import torch
sys.setrecursionlimit(10_000)

class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Again.apply(x * 2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient

x = torch.ones(2, requires_grad=True)
try:
    Again.apply(x)
except RecursionError:
    print("too deep")
(x * x).sum().backward()
"""


@pytest.mark.parametrize("verb", ["trace", "check"])
def test_a_large_limit_ends_before_the_stack_of_c(verb: str, tmp_path: Path) -> None:
    """A Function that calls itself takes much of that: with a limit higher by half it ended in signal 11."""
    (tmp_path / "deep.py").write_text(ENDLESS)
    plain = python(tmp_path / "deep.py")
    watched = gradinspect(verb, "deep.py", "--continue", cwd=tmp_path)

    assert (plain.returncode, watched.returncode) == (0, 0)
    assert "too deep" in watched.stdout
