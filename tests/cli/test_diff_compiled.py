"""`diff --compiled`: a program, compiled, beside itself in eager."""

import json
import re
import shutil
from math import prod
from pathlib import Path

import pytest
from runs import SKIPS_CODE_OF_TORCH, gradinspect

PROGRAM = """
import sys
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

def wrong(graph, inputs):
    for call in graph.graph.nodes:
        if call.target is torch.ops.aten.{operator}:
            call.target = torch.ops.aten.{instead}
    graph.recompile()
    return make_boxed_func(graph.forward)

def fused(graph, inputs):  # wrong where nobody asks for the result of the operator
    (output,) = (call for call in graph.graph.nodes if call.op == "output")
    for call in graph.graph.nodes:
        if call.target is torch.ops.aten.{operator} and call not in output.all_input_nodes:
            call.target = torch.ops.aten.{instead}
    graph.recompile()
    return make_boxed_func(graph.forward)

def right(graph, inputs):
    return make_boxed_func(graph.forward)

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return x * self.weight

model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), Gate(), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
backend = aot_autograd(fw_compiler={forward}, bw_compiler={backward})
compiled = torch.compile(model, backend={backend})
for _ in range(3):
    optimizer.zero_grad()
    loss = compiled(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
"""


def script(folder: Path, **words: str) -> Path:
    """Write the program: with a right backend of its own, if nothing else is asked for."""
    parts = {
        "operator": "mul.Tensor", "instead": "add.Tensor", "forward": "right", "backward": "right",
        "backend": "backend", **words,
    }  # fmt: skip
    text = PROGRAM
    for name, word in parts.items():
        text = text.replace(f"{{{name}}}", word)
    path = folder / "train.py"
    path.write_text(text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["backend", "'eager'", "'aot_eager'"])
def test_a_right_program_has_no_difference(tmp_path: Path, backend: str) -> None:
    """With dropout, a buffer, and no seed; torch.compile has the graphs and breaks that it has without us."""
    done = gradinspect("diff", "--compiled", script(tmp_path, backend=backend), "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found["num_compared"] == 7  # the loss, five gradients, and a buffer
    assert (found["num_graphs"], found["breaks"]) == (1, [])
    assert found["largest"] < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_an_operator_that_is_wrong_on_purpose_is_named(tmp_path: Path, direction: str) -> None:
    """With its line and module; what comes before it in backward is right."""
    path = script(tmp_path, **{direction: "wrong"})
    done = gradinspect("diff", "--compiled", path, "--format", "json")

    found = json.loads(done.stdout)
    line = path.read_text().splitlines().index("        return x * self.weight") + 1
    assert done.returncode == 1
    assert found["right"] == ["eager", "aot_eager", "aot_eager_decomp_partition"]
    assert found["operator"]["direction"] == direction
    place = found["operator"]["frame"]
    assert (found["operator"]["operator"], place["file"], place["line"]) == ("aten.mul", "train.py", line)
    assert found["operator"]["module"] == "2"
    names = {one["value"]["name"] for one in found["differences"]}
    assert "2.weight" in names
    assert ("4.weight" in names) is (direction == "forward")  # backward begins there, and is right


@pytest.mark.slow
def test_what_is_wrong_only_where_operators_are_fused_is_named_by_its_result(tmp_path: Path) -> None:
    """Each operator is right if its result is asked for; the first output of the graph that is off is named."""
    path = script(tmp_path, operator="tanh_backward.default", backward="fused", instead="mul.Tensor")
    done = gradinspect("diff", "--compiled", path, "--format", "json")

    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["right"] == ["eager", "aot_eager", "aot_eager_decomp_partition"]
    assert (found["operator"]["direction"], found["operator"]["is_fused"]) == ("backward", True)
    assert found["operator"]["module"] == "0"  # whose weight is behind the operator


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "code"), [("forward", "GI252"), ("backward", "GI251")])
def test_check_reports_the_same(tmp_path: Path, direction: str, code: str) -> None:
    """As one finding, which a comment on the operator's line keeps from being reported."""
    path = script(tmp_path, **{direction: "wrong"})
    lines = path.read_text().splitlines()
    backward, line = (lines.index(text) + 1 for text in ("    loss.backward()", "        return x * self.weight"))
    done = gradinspect("check", "--compiled", path, "--format", "json")
    (finding,) = json.loads(done.stdout)["findings"]

    assert (done.returncode, finding["code"]) == (1, code)
    assert [(place["role"], place["line"]) for place in finding["places"]] == [
        ("backward", backward),
        ("operator", line),
    ]
    assert "2.weight" in finding["subjects"]
    assert "The first wrong operator is aten.mul in the " + direction in finding["text"]

    if direction == "forward":
        return
    path.write_text(path.read_text().replace("x * self.weight", f"x * self.weight  # gradinspect: ignore[{code}]"))
    done = gradinspect("check", "--compiled", path, "--format", "json")
    assert done.returncode == 0
    assert [one["code"] for one in json.loads(done.stdout)["suppressed"]] == [code]


REGIONS = """
import torch
import torch._inductor.decomposition
from torch import nn
torch._inductor.decomposition.decompositions[torch.ops.aten.gelu.default] = lambda x, **_: x * torch.sigmoid(1.7 * x)

@torch.library.custom_op("regions::count", mutates_args=())  # it writes into `seen`, and does not say so
def count(seen: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    seen.add_(x.sum(0))
    return seen.clone()

@count.register_fake
def _(seen, x):
    return torch.empty_like(seen)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
    def forward(self, x):
        return torch.tanh(self.layer(x))

class Otherwise(Block):
    def forward(self, x):
        return self.layer(x) * (1.5 if torch.compiler.is_compiling() else 1)

class Counted(Block):
    def forward(self, x):
        count(self.seen, x.detach())
        return self.layer(x)

class Bent(Block):
    def forward(self, x):
        return nn.functional.gelu(self.layer(x))

@torch.compile(backend="{backend}")
def loss_of(x):
    return x.square().mean()

last = {kind}()
blocks = nn.ModuleList([Block(), Block()])
for block in blocks:
    block.compile(backend="{backend}")
last = torch.compile(last, backend="{backend}")
loss_of(last(blocks[1](blocks[0](torch.randn(3, 4))))).backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "backend", "right"),
    [
        ("Otherwise", "aot_eager", []),
        ("Counted", "aot_eager", ["eager"]),
        ("Bent", "aot_eager_decomp_partition", ["eager", "aot_eager"]),
    ],
)
def test_the_region_is_named_where_the_backend_is_right(
    tmp_path: Path, kind: str, backend: str, right: list[str]
) -> None:
    """By compiling one of several at a time; both blocks of the loop are one."""
    path = tmp_path / "train.py"
    path.write_text(REGIONS.replace("{kind}", kind).replace("{backend}", backend))
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    (region,) = found["regions"]
    assert (done.returncode, found["right"]) == (1, right), done.stderr
    assert (region["name"], region["frame"]["line"]) == (
        kind,
        path.read_text().splitlines().index(f'last = torch.compile(last, backend="{backend}")') + 1,
    )
    assert found["num_right_regions"] == 2
    assert "Compiling one of 3 regions at a time" in done.stderr


TWO_BACKENDS = """
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

def bent(graph, inputs):
    for call in graph.graph.find_nodes(op="call_function", target=torch.{wrong}):
        call.target = torch.{instead}
    graph.recompile()
    return {compiled}

class Bent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return nn.functional.tanhshrink(torch.tanh(self.layer(x)))

net = nn.Sequential(Bent(), Bent())
net[0].compile(backend="aot_eager")
net[1] = torch.compile(net[1], backend={backend})
net(torch.randn(3, 4)).square().mean().backward()
"""
AOT = {
    "wrong": "ops.aten.tanh.default",
    "instead": "ops.aten.sigmoid.default",
    "compiled": "make_boxed_func(graph.forward)",
    "backend": "aot_autograd(fw_compiler=bent, bw_compiler=lambda graph, _: make_boxed_func(graph.forward))",
}
DYNAMO = {"wrong": "tanh", "instead": "sigmoid", "compiled": "graph.forward", "backend": "bent"}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "named", "line"), [(AOT, "compiler_fn", 18), (DYNAMO, "bent", None)])
def test_of_several_backends_that_of_the_wrong_region_is_named(
    tmp_path: Path, words: dict[str, str], named: str, line: int | None
) -> None:
    """Whether its operators can be compared or not; the other one was right."""
    path, text = tmp_path / "train.py", TWO_BACKENDS
    for name, word in words.items():
        text = text.replace("{" + name + "}", word)
    path.write_text(text)
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    assert (done.returncode, found["stage"]) == (1, named), done.stderr
    assert [region["name"] for region in found["regions"]] == ["Bent"]
    assert (found["operator"] and found["operator"]["frame"]["line"]) == line


WRITES = """
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

def lossy(graph, inputs):
    for call in graph.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        call.replace_all_uses_with(call.args[0])
        graph.graph.erase_node(call)
    graph.recompile()
    return make_boxed_func(graph.forward)

def unwritten(graph, inputs):
    for call in graph.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        call.replace_all_uses_with(call.args[1])
        graph.graph.erase_node(call)
    graph.recompile()
    return make_boxed_func(graph.forward)

def right(graph, inputs):
    return make_boxed_func(graph.forward)

class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.cache = nn.Linear(4, 4), torch.zeros(3, 4)
    def forward(self, x, total):
        with torch.no_grad():
            total.add_(x.sum(0))
            self.cache[0] = x[0]
        return self.layer(x).tanh()

net, total, untouched = Cached(), torch.zeros(4), torch.zeros(4)
backend = aot_autograd(fw_compiler={forward}, bw_compiler=right, keep_inference_input_mutations=True)
fast = torch.compile(net, backend={backend})
for _ in range(2):
    fast(torch.randn(3, 4), total).square().mean().backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "backend"),
    [("lossy", "backend"), ("unwritten", "backend"), ("right", "backend"), ("right", "'aot_eager'")],
)
def test_what_compiled_code_should_have_written_is_compared(tmp_path: Path, forward: str, backend: str) -> None:
    """A variable, and an attribute of a module that is no buffer; the line that writes is named."""
    path = tmp_path / "train.py"
    path.write_text(WRITES.replace("{forward}", forward).replace("{backend}", backend))
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    off = {(one["value"]["role"], one["value"]["name"]) for one in found["differences"]}
    assert done.returncode == int(forward != "right")
    assert found["num_compared"] == 5  # the loss, two gradients, and both tensors
    assert off == ({("tensor", "total"), ("tensor", "cache")} if forward != "right" else set())
    if forward != "right":
        line = path.read_text().splitlines().index("            total.add_(x.sum(0))") + 1
        assert (found["operator"]["operator"], found["operator"]["frame"]["line"]) == ("aten.copy_", line)


VIEWS = """
import torch
from torch import nn

def copying(graph, inputs):
    return lambda *values: [one if one.requires_grad else one.clone() for one in graph(*values)]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(3, 4))
    def forward(self, x):
        hidden = self.layer(x).tanh()
        with torch.no_grad():
            left, right = (x * 2).chunk(2)  # a compiler may compute each of them alone
        same = nn.functional.dropout(x, 0.5, training=False)  # the tensor itself in eager
        return hidden, x.view(-1), self.cache[0], self.layer.weight.t(), hidden.detach(), left, right, same, x.clone()

net, x = Net(), torch.randn(2, 4)
hidden, flat, row, turned, kept, left, right, same, apart = torch.compile(net, backend={backend})(x)
hidden.square().mean().backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["copying", "'aot_eager'", "'inductor'"])
def test_a_view_that_nobody_writes_is_still_one(tmp_path: Path, backend: str) -> None:
    """Of an input, a parameter or a buffer; a backend that returns copies is named."""
    if backend == "'inductor'" and shutil.which("g++") is None:
        pytest.skip("inductor needs a compiler")
    path = tmp_path / "train.py"
    path.write_text(VIEWS.replace("{backend}", backend))
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    lost = [(one["role"], one["name"], one["problem"]) for one in found["one_sided"]]
    names = ["flat and x", "row and cache"] if backend == "copying" else []
    assert lost == [("memory", name, "shared only in eager") for name in names], done.stderr
    assert (done.returncode, found["differences"]) == (int(bool(names)), [])
    assert found["stage"] == ("copying" if names else "")


@pytest.mark.slow
def test_buffers_of_compiled_parts_have_their_names(tmp_path: Path) -> None:
    """Of a part that is assigned, of each of a list, and of one inside another; eager has the modules alone."""
    path = tmp_path / "train.py"
    path.write_text(
        """
import torch
from torch import nn

def part():
    return torch.compile(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), backend="aot_eager")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.many = part(), nn.ModuleList([part(), part()])
        self.outer = nn.Sequential(part(), nn.BatchNorm1d(4))

    def forward(self, x):
        for layer in (self.one, *self.many, self.outer):
            x = layer(x).tanh()
        return x

net = torch.compile(Net(), backend="aot_eager")
net(torch.randn(8, 4)).square().mean().backward()
"""
    )
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    assert (done.returncode, found["one_sided"]) == (0, [])
    spans = [re.findall(r"(\d+)-(\d+)", line.partition(":")[0]) for line in found["incomparable"]]  # of equal blocks
    num_incomparable = sum(prod(int(last) - int(first) + 1 for first, last in each) for each in spans)
    assert found["num_compared"] + num_incomparable == 1 + 4 * 4 + 2 + 5 * 3


@pytest.mark.slow
def test_a_compiled_step_is_compared_by_what_its_variables_hold(tmp_path: Path) -> None:
    """No variable of it has a name while it is compiled: neither its loss nor an input that it makes."""
    path = tmp_path / "train.py"
    path.write_text(
        """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(x):
    x = x.clone().requires_grad_()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
torch.compile(step, backend="aot_eager")(torch.randn(3, 4))
"""
    )
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    assert (done.returncode, found["one_sided"], found["differences"]) == (0, [], [])
    assert found["num_compared"] == 4


@pytest.mark.slow
def test_values_are_compared_in_any_layout(tmp_path: Path) -> None:
    """As far as there are any; a gradient of few rows, a matrix of few elements, a conjugate that is none yet."""
    path = tmp_path / "train.py"
    path.write_text(
        """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.EmbeddingBag(20, 4, sparse=True, mode="sum"), nn.Linear(4, 2)
        self.register_buffer("edges", torch.eye(3).to_sparse_csr())
        self.register_buffer("turned", torch.ones(3, dtype=torch.complex64).conj())
        self.register_buffer("packed", torch.ones(3, 3).to_mkldnn())
        self.register_buffer("steps", torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
        self.register_buffer("shape", torch.empty(3, device="meta"))

    def forward(self, tokens):
        return self.out(self.words(tokens))

net = Net()
torch.compile(net, backend="aot_eager")(torch.randint(0, 20, (3, 5))).sum().backward()
"""
    )
    done = gradinspect("diff", "--compiled", path, "--format", "json", is_measured=False)

    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["num_compared"] == 8
    assert found["incomparable"] == ["shape: on the meta device, which has no values"]


@pytest.mark.slow
def test_what_is_printed_is_what_the_program_prints_once(tmp_path: Path) -> None:
    """It runs many times, and is heard the first time."""
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nprint('hello')\nw = torch.randn(3, requires_grad=True)\n"
        "torch.compile(lambda w: w.exp().sum(), backend='aot_eager')(w).backward()\n"
    )
    done = gradinspect("diff", "--compiled", path)

    assert done.returncode == 0
    assert done.stdout.count("hello") == 1
    assert "No difference but rounding: 2 values, 1 compiled graph" in done.stdout


@pytest.mark.slow
def test_a_program_that_compiles_nothing_is_said_to(tmp_path: Path) -> None:
    """In one sentence."""
    path = tmp_path / "train.py"
    path.write_text("import torch\nw = torch.randn(3, requires_grad=True)\nw.sum().backward()\n")
    done = gradinspect("diff", "--compiled", path)

    assert done.returncode == 2
    assert "compiles nothing before its first step ends" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("net(torch.randn(2, 4))", "does it call what that returns"),
        ("fast(torch.randn(1, 2, 4))[0]", "torch.compile gave up: Attempted to wrap RNN"),
    ],
)
def test_why_nothing_was_compiled_is_said(tmp_path: Path, call: str, why: str) -> None:
    """What is compiled is never called, or torch.compile leaves it as it is."""
    path = tmp_path / "train.py"
    kind = "LSTM(4, 4)" if "fast" in call else "Linear(4, 4)"
    path.write_text(
        f"import torch\nnet = torch.nn.{kind}\nfast = torch.compile(net, backend='aot_eager')\n"
        f"{call}.sum().backward()\n"
    )
    done = gradinspect("diff", "--compiled", path)

    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())


@pytest.mark.slow
@pytest.mark.skipif(not SKIPS_CODE_OF_TORCH, reason="this torch compiles it")
def test_a_module_of_torch_that_is_compiled_without_effect_is_named(tmp_path: Path) -> None:
    """`compile()` of a module whose code is all torch's compiles nothing; torch.compile does."""
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nfrom torch import nn\n"
        "net = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)))\n"
        "for block in net: block.compile(backend='aot_eager')\n"
        "net(torch.randn(2, 4)).sum().backward()\n"
    )
    done = gradinspect("diff", "--compiled", path)
    path.write_text(path.read_text().replace("block.compile(", "block.forward = torch.compile(block.forward, "))
    compiled = gradinspect("diff", "--compiled", path)

    assert done.returncode == 2
    assert "0-2: .compile() compiles no code of torch.nn itself, torch.compile(module) does." in done.stderr
    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.slow
def test_a_program_that_only_fails_compiled_shows_its_error(tmp_path: Path) -> None:
    """A backend that is not there."""
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nw = torch.randn(3, requires_grad=True)\n"
        "torch.compile(lambda w: w.sum(), backend='nowhere')(w).backward()\n"
    )
    done = gradinspect("diff", "--compiled", path)

    assert done.returncode == 3
    assert "Invalid backend: 'nowhere'" in done.stderr
    sentence = "The script failed before any backward call: InvalidBackend. torch.compile has no backend 'nowhere' here"
    assert sentence in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a.py", "b.py"], "compares one program with itself, and 2 were given"),
        ([], "compares one program with itself, and none was given"),
        (["{file}", "--values"], "'--values' has no effect with '--compiled'"),
        (["{file}", "--eager"], "'--eager' cannot be combined with '--compiled'"),
        (["{file}", "--format", "github"], "'--format github' is for two sources"),
        (["-"], "'-' can be read only once"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    """In one sentence, before anything runs."""
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit(9)\n")
    done = gradinspect("diff", "--compiled", *(word.replace("{file}", str(path)) for word in words))

    assert done.returncode == 2
    assert sentence in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--steps", "3"], "'--steps' has no effect with '--compiled'"),
        (["--gradcheck"], "'--gradcheck' has no effect with '--compiled'"),
        (["--eager"], "'--eager' cannot be combined with '--compiled'"),
    ],
)
def test_what_check_cannot_compare_is_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    """In one sentence, before anything runs."""
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit(9)\n")
    done = gradinspect("check", "--compiled", path, *words)

    assert done.returncode == 2
    assert sentence in done.stderr.replace("\n", " ")
