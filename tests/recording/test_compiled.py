"""What is inside the nodes of torch.compile: their backward operators, and what each saved tensor is."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import gradinspect
from torch import nn
from torch._dynamo.utils import counters
from torch._functorch._aot_autograd.aot_autograd_result import serialize_graph_module

from gradinspect import capture
from gradinspect.analyses.memory.compiled import compiled_kept
from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.notes import memory_notes
from gradinspect.analyses.memory.saved_rows import saved_rows
from gradinspect.analyses.structure.node_names import function_words
from gradinspect.graph import Graph, Node
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.terminal.trees.tree import TreeOptions, render_tree
from gradinspect.storage import read_graph
from gradinspect.storage.checks import check_graph


class Block(nn.Module):
    """A block with a skip connection."""

    def __init__(self) -> None:
        """Make its layers."""
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the layers make of it."""
        return x + nn.functional.gelu(self.up(self.norm(x)))


class Square(torch.autograd.Function):
    """Squares, with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Double."""
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def _blocks() -> nn.Sequential:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(8, 2))


def _checkpointed(net: nn.Module) -> Callable[[torch.Tensor], Any]:
    run = torch.utils.checkpoint.checkpoint
    compiled: Callable[[torch.Tensor], Any] = torch.compile(
        lambda x: run(net, x, use_reentrant=False), backend="aot_eager"
    )
    return compiled


def _regional(net: nn.Sequential) -> nn.Module:
    for block in net[:2]:
        block.compile(backend="aot_eager")
    return net


PROGRAMS: dict[str, Callable[[nn.Sequential], Callable[[torch.Tensor], Any]]] = {
    "a model": lambda net: torch.compile(net, backend="aot_eager"),
    "other sizes": lambda net: torch.compile(net, backend="aot_eager", dynamic=True),
    "blocks": _regional,
    "a function": lambda net: torch.compile(lambda x: net(x).sin(), backend="aot_eager"),
    "a checkpoint": _checkpointed,
    "a custom Function": lambda net: torch.compile(lambda x: net(Square.apply(x)), backend="aot_eager"),
    "decomposed": lambda net: torch.compile(net, backend="aot_eager_decomp_partition"),
}


def _raw_bytes(loss: torch.Tensor, parameters: list[nn.Parameter]) -> int:
    """Sum the storages that nodes keep, by a walk of our own over their raw saved tensors."""
    skipped = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    found: dict[int, int] = {}
    seen: set[Any] = set()
    todo: list[Any] = [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        raws = [getattr(node, name) for name in dir(node) if name.startswith("_raw_saved_")]
        flat = [one for raw in raws for one in (raw if isinstance(raw, list | tuple) else [raw])]
        for tensor in [one.data for one in flat] + list(getattr(node, "_tensors_no_vc_check", ())):
            if tensor is not None:
                found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        todo += [following for following, _ in node.next_functions]
    return sum(size for key, size in found.items() if key not in skipped)


def _kept(graph: Graph) -> int:
    used = {
        value.tensor.storage
        for node in graph.nodes
        for value in node.saved
        if value.tensor is not None and value.tensor.storage is not None
    }
    return sum(
        storage.num_bytes
        for place, storage in enumerate(graph.storages)
        if place in used and storage.origin != "parameter"
    )


@pytest.mark.filterwarnings("default")  # torch.compile fails where its own warnings are errors
@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_is_kept_is_what_the_nodes_keep(kind: str) -> None:
    """To the byte, and the record is a valid one whose gradients go on to all parameters."""
    net = _blocks()
    loss = PROGRAMS[kind](net)(torch.randn(4, 8)).square().mean()
    graph = capture(loss)

    check_graph(graph)
    assert _kept(graph) == _raw_bytes(loss, list(net.parameters()))
    assert any(node.kind == "compiled" and node.function is None for node in graph.nodes)
    assert _reached(graph) == set(range(len(graph.nodes)))
    assert {leaf.leaf.name for leaf in graph.nodes if leaf.leaf is not None} == {
        f"{name}" for name, _ in net.named_parameters()
    }


def _reached(graph: Graph) -> set[int]:
    found = {root.node for root in graph.roots}
    for number, node in enumerate(graph.nodes):
        found |= {edge.next_node for edge in node.next_edges if edge is not None and number in found}
    return found


def test_looking_inside_compiles_nothing() -> None:
    """No graph, break or recompile more, and the gradients are those without a look."""
    net, x = _blocks(), torch.randn(4, 8)
    compiled = torch.compile(net, backend="aot_eager")
    compiled(x).square().mean().backward()
    plain = [parameter.grad for parameter in net.parameters()]
    net.zero_grad()
    before = {name: dict(counters[name]) for name in ("stats", "frames", "graph_break", "aot_autograd")}
    loss = compiled(x).square().mean()
    capture(loss)
    loss.backward()

    assert before == {name: dict(counters[name]) for name in before}
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(plain, net.parameters(), strict=True))


SCRIPT = """\
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.last = nn.Linear(16, 1)
    def forward(self, x):
        hidden = self.first(x).sin()
        return self.last(hidden)
net = Net()
torch.compile(net, backend="BACKEND")(torch.randn(4, 8)).square().mean().backward()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program with a compiled model."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("BACKEND", "aot_eager"))
    return path


def test_each_operator_has_the_module_and_line_of_its_forward(script: Path) -> None:
    """And the function whose gradient it computes; a capture file has it all."""
    out = script.with_name("run.json")
    done = gradinspect("export", script, "-o", out)
    graph = json.loads(out.read_text())["graph"]
    (cos,) = [node for node in graph["nodes"] if node["name"] == "aten.cos"]

    assert done.returncode == 0, done.stderr
    assert graph["frames"][cos["frame"]]["line"] == 10
    assert cos["forward"] == "sin"
    assert {graph["modules"][node["module"]]["path"] for node in graph["nodes"] if node["name"] == "aten.sum"} == {
        "first",
        "last",
    }


def test_a_saved_tensor_is_named_by_what_made_it(script: Path) -> None:
    """With its line, in place of its position."""
    said = gradinspect("saved", script, "--format", "csv").stdout

    assert "aten.addmm[" in said
    assert [line for line in said.splitlines() if "aten.addmm[" in line and "train.py:10" in line]


def test_memory_has_the_modules_inside(script: Path) -> None:
    """Not all of it in the module that compiles."""
    said = gradinspect("memory", script).stdout

    assert "first" in said
    assert "last" in said


def test_what_cannot_be_seen_is_said() -> None:
    """A node whose saved tensors are gone is one box, with one sentence."""
    net = _blocks()
    loss = torch.compile(net, backend="aot_eager")(torch.randn(4, 8)).square().mean()
    loss.backward()
    graph = capture(loss)
    (box,) = [node for node in graph.nodes if node.kind == "compiled"]

    assert isinstance(box, Node)
    assert [text for text in graph.warnings if text.startswith("What is inside 1 compiled node is not known")]


def test_what_a_cache_has_stripped_is_said() -> None:
    """Where torch has removed the notes on each operator, none of ours says of what module it is."""
    loss = torch.compile(_blocks(), backend="aot_eager")(torch.randn(4, 8)).square().mean()
    whole = capture(loss)
    (info,) = [type(node)._forward_cls._lazy_backward_info for node in _live(loss) if _is_compiled(node)]
    serialize_graph_module(info.bw_module)
    bare = capture(loss)

    assert not whole.warnings
    assert [text.partition(":")[0] for text in bare.warnings] == [
        "What is inside 1 compiled node has no modules and lines"
    ]
    assert [node.name for node in bare.nodes] == [node.name for node in whole.nodes]


def _keep(graph: Graph) -> list[tuple[object, ...]]:
    """List what each node runs, where its gradients go, and what it keeps."""
    return [
        (
            node.name,
            node.next_edges,
            [(value.name, value.index) for value in node.saved],
        )
        for node in graph.nodes
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what inductor imports
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler")
def test_operators_that_come_from_a_cache_are_wired_as_in_the_run_that_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph that torch keeps there has no notes. Its operators are read, and none is run, so no number is drawn."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    model = torch.nn.Sequential(*_blocks(), torch.nn.Dropout(0.5))
    given = torch.randn(4, 8)

    def run() -> tuple[Graph, dict[str, int]]:
        torch.compiler.reset()
        counters.clear()
        loss = torch.compile(model)(given).square().mean()
        before = torch.random.get_rng_state()
        graph = capture(loss)
        assert torch.equal(torch.random.get_rng_state(), before)
        loss.backward()
        return graph, dict(counters["aot_autograd"])

    first, wrote = run()
    second, read = run()
    (note,) = compiled_kept(second)

    assert (wrote.get("autograd_cache_miss"), read.get("autograd_cache_hit")) == (1, 1)
    assert _keep(second) == _keep(first)
    assert Counter(_origins(second)) == Counter(_origins(first)) >= Counter({"activation": 2})
    assert note.is_stripped
    assert not first.warnings
    assert "has no modules and lines: torch drops them where it writes code to its cache" in second.warnings[0]


def _origins(graph: Graph) -> list[str | None]:
    """Where the storages that compiled nodes keep come from."""
    saved = (value for node in graph.nodes if node.kind == "compiled" for value in node.saved)
    places = {value.tensor.storage for value in saved if value.tensor is not None and value.tensor.storage is not None}
    return [graph.storages[place].origin for place in places]


def _live(loss: torch.Tensor) -> list[Any]:
    found: dict[Any, None] = {loss.grad_fn: None}
    for node in (order := [loss.grad_fn]):
        new = [after for after, _ in node.next_functions if after is not None and after not in found]
        found.update(dict.fromkeys(new))
        order += new
    return order


def _is_compiled(node: Any) -> bool:
    return hasattr(type(node), "_forward_cls") and hasattr(type(node)._forward_cls, "_lazy_backward_info")


WRAPPED = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.up(x).tanh()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([torch.compile(Block(), backend="aot_eager"), Block()])

    def forward(self, x):
        return self.blocks[1](self.blocks[0](self.blocks[0](x)))

net = WHOLE
net(torch.randn(4, 8)).sum().backward()
"""


@pytest.mark.parametrize("whole", ["Net()", "torch.compile(Net(), backend='aot_eager')"])
def test_a_compiled_module_has_the_class_and_the_path_of_what_it_wraps(tmp_path: Path, whole: str) -> None:
    """A part, called twice, and the whole model: no module has two rows of the same path."""
    path = tmp_path / "train.py"
    path.write_text(WRAPPED.replace("WHOLE", whole))
    done = gradinspect("export", path, "-o", tmp_path / "run.json")
    found = read_graph(tmp_path / "run.json")

    assert done.returncode == 0, done.stderr
    assert (found.modules[0].path, found.modules[0].class_name) == ("", "Net")
    assert "OptimizedModule" not in {call.class_name for call in found.modules}
    assert all(found.modules[call.parent].path != call.path for call in found.modules if call.parent is not None)
    if "compile" not in whole:
        assert [(call.path, call.call) for call in found.modules if call.class_name == "Block"] == [
            ("blocks.0", 1), ("blocks.0", 2), ("blocks.1", 1),
        ]  # fmt: skip


@pytest.mark.filterwarnings("default")  # as above
def test_a_compiled_node_is_named_after_its_function() -> None:
    """No screen has the internal path of torch's class; after a graph break it is still the program's function."""

    def contrast(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        hidden = x @ weight
        torch._dynamo.graph_break()
        return (hidden * weight.sum()).exp()

    torch._dynamo.reset()
    weight = torch.randn(8, 8, requires_grad=True)
    net = torch.compile(Block(), backend="aot_eager")
    of_functions = capture(torch.compile(contrast, backend="aot_eager")(torch.randn(4, 8), weight).sum())
    of_module = capture(net(torch.randn(4, 8)).sum(), model=net)
    words = [
        [word for number in range(len(graph.nodes)) if (word := function_words(graph, number))]
        for graph in (of_functions, of_module)
    ]

    assert words == [["compiled by torch.compile: contrast"] * 2, ["compiled by torch.compile: forward"]]
    text = "\n".join(line.plain for line in render_tree(of_module, TreeOptions(full=True)))
    assert "compiled by torch.compile: forward" in text
    assert "custom Function" not in render_dot(of_module)
    assert "_functorch" not in text + render_dot(of_module)


def test_what_the_compiler_notes_on_a_node_is_not_shown() -> None:
    """Which inputs need a gradient the edges say; sizes that the program does not have are none."""
    net = torch.compile(Block(), backend="aot_eager")
    graph = capture(net(torch.randn(4, 8)).sum(), model=net)

    assert {value.kind for node in graph.nodes if node.kind == "compiled" for value in node.saved} == {"tensor"}


def test_a_graph_that_cannot_be_read_leaves_the_box_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one sentence: what a compiler notes of its graphs differs between versions of torch."""

    def fail(*_: object) -> None:
        raise KeyError("fwd_nn_module_stack")

    monkeypatch.setattr("gradinspect.recording.compiled.backward_graph", fail)
    model = torch.nn.Linear(3, 2)
    graph = capture(torch.compile(model, backend="aot_eager")(torch.ones(4, 3)).sum())

    assert [node.name for node in graph.nodes if node.kind == "compiled"] == ["CompiledFunctionBackward"]
    assert graph.warnings[-1].startswith("What is inside compiled nodes could not be read with this torch (KeyError).")


class Mixed(nn.Module):
    """Operators that save inputs, outputs, both and neither, and dropout, of whose mask eager has another kind."""

    def __init__(self) -> None:
        """Make its layers."""
        super().__init__()
        self.first = nn.Linear(8, 12)
        self.norm = nn.LayerNorm(12)
        self.last = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call them."""
        hidden = nn.functional.dropout(self.norm(self.first(x).tanh()), 0.5)
        return torch.log_softmax(self.last(nn.functional.silu(hidden).exp()), -1)


@pytest.mark.filterwarnings("default")  # as above
@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
@pytest.mark.parametrize("make", [Mixed, _blocks])
def test_what_eager_keeps_too_is_among_what_eager_keeps(make: Callable[[], nn.Module], backend: str) -> None:
    """As many storages of each size at least; what is said to be kept by compiled code alone has no other maker."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    net, x = make(), torch.randn(4, 8)
    eager = _sizes(capture(net(x).sum(), model=net))
    graph = capture(torch.compile(net, backend=backend)(x).sum(), model=net)
    said = {
        verdict: Counter(
            graph.storages[place].num_bytes for place, found in _verdicts(graph).items() if verdict in found
        )
        for verdict in (True, False)
    }

    assert said[True]
    assert not said[True] - eager
    (done,) = compiled_kept(graph)
    assert done.num_bytes == sum(size * count for size, count in _sizes(graph).items())
    assert sum(size * count for size, count in said[True].items()) == done.too_bytes


def test_a_mask_of_dropout_is_kept_by_compiled_code_alone() -> None:
    """On the CPU eager keeps one of floating point numbers; a table, a tree and a note say so."""
    torch._dynamo.reset()
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 1))
    graph = capture(torch.compile(net, backend="aot_eager")(torch.randn(4, 8)).sum(), model=net)
    (mask,) = [row for row in saved_rows(graph) if row.value.startswith("bool")]
    (note,) = [note for note in memory_notes(graph, measure_memory(graph)) if note.kind == "compiled"]

    assert mask.kept_by_eager == "no"
    assert note.text.endswith(
        "keeps 256 B that eager keeps too, 32 B that eager does not keep; computes 1 operator again"
    )


def _verdicts(graph: Graph) -> dict[int, set[bool | None]]:
    found: dict[int, set[bool | None]] = {}
    for node in graph.nodes:
        for value in node.saved:
            place = None if value.tensor is None else value.tensor.storage
            if place is not None and graph.storages[place].origin not in {"parameter", "buffer"}:
                found.setdefault(place, set()).add(value.kept_by_eager)
    return found


def _sizes(graph: Graph) -> "Counter[int]":
    return Counter(graph.storages[place].num_bytes for place in _verdicts(graph))
