"""A backend that is wrong in one operator: `diff --compiled` names the operator, its module and its line."""

import json
from pathlib import Path

import pytest
from runs import gradinspect

PROGRAM = """
import operator
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

def wrong(graph, inputs):
    for call in list(graph.graph.nodes):
        made = call
        if call.target is operator.getitem and call.args[1] == 0:
            made = call.args[0]
        elif isinstance(call.meta.get("val"), tuple):
            continue  # its first result is changed, where it is taken out
        if made.target is torch.ops.aten.{operator}:
            with graph.graph.inserting_after(call):
                off = graph.graph.call_function(torch.ops.aten.mul.Tensor, (call, 1.25))
            call.replace_all_uses_with(off, delete_user_cb=lambda user: user is not off)
    graph.recompile()
    return make_boxed_func(graph.forward)

def right(graph, inputs):
    return make_boxed_func(graph.forward)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 8)
        self.gelu = nn.GELU()
        self.conv = nn.Conv1d(6, 4, 3)
        self.softmax = nn.Softmax(-1)
    def forward(self, x):
        x = self.words(x)
        x = self.gelu(self.up(self.norm(x)))
        x = torch.cat([x, x.sin()], 1)
        x = self.softmax(self.conv(x))
        return x.square().mean(-1)

model = Net()
backend = aot_autograd(fw_compiler={forward}, bw_compiler={backward})
compiled = torch.compile(model, backend=backend)
for _ in range(2):
    compiled(torch.randint(11, (2, 3))).square().sum().backward()
"""

UP, SOFTMAX = "        x = self.gelu(self.up(self.norm(x)))", "        x = self.softmax(self.conv(x))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("direction", "operator", "module", "text"),
    [
        ("forward", "addmm.default", "up", UP),
        ("forward", "convolution.default", "conv", SOFTMAX),
        ("forward", "_softmax.default", "softmax", SOFTMAX),
        ("forward", "native_layer_norm.default", "norm", UP),
        ("forward", "gelu.default", "gelu", UP),
        ("backward", "gelu_backward.default", "gelu", UP),
        ("backward", "mm.default", "up", UP),
        ("backward", "_softmax_backward_data.default", "softmax", SOFTMAX),
    ],
)
def test_the_operator_is_named_with_its_module_and_line(
    tmp_path: Path, direction: str, operator: str, module: str, text: str
) -> None:
    """Only what the backend was given is to blame: eager and both stages before it are right."""
    program = PROGRAM.replace("{operator}", operator)
    for one in ("forward", "backward"):
        program = program.replace(f"{{{one}}}", "wrong" if one == direction else "right")
    path = tmp_path / "train.py"
    path.write_text(program)
    done = gradinspect("diff", "--compiled", path, "--format", "json")

    found = json.loads(done.stdout)
    named = found["operator"]
    assert (done.returncode, found["right"]) == (1, ["eager", "aot_eager", "aot_eager_decomp_partition"])
    assert (named["operator"], named["direction"]) == (f"aten.{operator.removesuffix('.default')}", direction)
    assert named["module"] == module
    assert program.splitlines()[named["frame"]["line"] - 1] == text
