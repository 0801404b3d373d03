"""Custom Functions that store something on `ctx` under the name of a method of the node: NOTE [A ctx is a node]."""

from pathlib import Path

import pytest
from runs import gradinspect

pytestmark = pytest.mark.slow

PROGRAM = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.name = "scale"
        ctx.register_hook = ctx.register_prehook = "no method"
        ctx.sizes = tuple(range(100_000))
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        assert ctx.name == "scale" and ctx.register_hook == "no method"
        return grad * 2

x = torch.ones(3, requires_grad=True)
Scale.apply(x).sum().backward()
assert x.grad.tolist() == [2.0] * 3
"""


@pytest.mark.parametrize(
    "words",
    [
        ["trace"], ["saved", "--format", "csv"], ["memory"], ["grads", "--by", "node"], ["check"], ["step"],
        ["grads", "--timeline", "t.json"], ["export", "-o", "g.html"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_verb_shows_the_node(tmp_path: Path, words: list[str]) -> None:
    """The node has its own name, what the program stored stays, and nothing fails."""
    (tmp_path / "program.py").write_text(PROGRAM)
    run = gradinspect(words[0], "program.py", *words[1:], "--continue", cwd=tmp_path)

    assert (run.returncode, "Traceback" in run.stderr) == (0, False)
    assert words[0] not in {"trace", "saved"} or "ScaleBackward" in run.stdout
