"""Every screen says the same number of bytes for the same module: NOTE [Bytes held] in `saved_storages`."""

import json
from collections.abc import Callable
from functools import cache

import pytest
import torch
from factories import walk_scopes
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.saved_rows import saved_rows
from gradinspect.analyses.memory.tree import ModuleBytes, module_tree
from gradinspect.analyses.selection.name_patterns import containing_paths
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.analyses.summary import summarize
from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder
from gradinspect.renderers.data.graphs.whole_graph import render_nodes_csv
from gradinspect.renderers.html.data import page_json
from gradinspect.renderers.picture.colors.palettes import LIGHT
from gradinspect.renderers.picture.dot.scopes import ScopeLabels
from gradinspect.renderers.picture.plan.parts import DrawOptions


class Residual(nn.Module):
    """The block of a ResNet."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = nn.Conv2d(width, out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + self.downsample(x))


class Block(nn.Module):
    """The block of a GPT, with a causal mask and dropout masks that it makes for itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """Embeddings, blocks and a head that shares the weight of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(40, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(3))
        self.head = nn.Linear(16, 40, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, *, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Run."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class Tagger(nn.Module):
    """An LSTM between an embedding and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 8), nn.Linear(12, 5)
        self.lstm = nn.LSTM(8, 12, num_layers=2, dropout=0.3, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        return self.head(self.lstm(self.embed(x))[0])


def resnet() -> Callable[[], torch.Tensor]:
    """Two residual blocks, one of them with a stride."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8, 8, 1), Residual(8, 16, 2), nn.Flatten())
    x = torch.randn(2, 3, 8, 8)
    return lambda: model(x).square().mean()


def gpt() -> Callable[[], torch.Tensor]:
    """Three blocks, called with keywords."""
    model, tokens = Gpt(), torch.randint(0, 40, (2, 8))
    return lambda: model(tokens=tokens, targets=tokens.roll(1))


def autocast() -> Callable[[], torch.Tensor]:
    """Casts to bfloat16."""
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.5), nn.Linear(32, 4))
    x = torch.randn(8, 16)

    def run() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().square().mean()

    return run


def lstm() -> Callable[[], torch.Tensor]:
    """Two layers with dropout between them."""
    model, x = Tagger(), torch.randint(0, 20, (2, 6))
    return lambda: model(x).square().mean()


PROGRAMS = (resnet, gpt, autocast, lstm)


@cache
def recorded(program: Callable[[], Callable[[], torch.Tensor]]) -> Graph:
    """Record a program."""
    torch.manual_seed(0)
    run = program()
    with Recorder() as recorder:
        loss = run()
    return capture_graph(loss, recorder=recorder)


def by_memory(graph: Graph) -> dict[str, int]:
    """Return what `memory` says for each module."""
    found: dict[str, int] = {}

    def add(modules: tuple[ModuleBytes, ...]) -> None:
        for module in modules:
            found[module.path if module.class_name else "outside"] = module.total_bytes
            add(module.children)

    add(module_tree(graph, measure_memory(graph), folds=False))
    return found


def by_tree(graph: Graph) -> dict[str, int]:
    """Return what tree, explorer and pictures say: they show the scopes of a folding."""
    found: dict[str, int] = {}
    for scope in walk_scopes(fold_graph(graph)):
        if scope.module is not None:
            path = graph.modules[scope.module].path
            found[path] = found.get(path, 0) + scope.held_bytes
    return found


def by_path(graph: Graph, num_bytes: list[int]) -> dict[str, int]:
    """Add up bytes of nodes for each module around them."""
    found: dict[str, int] = {}
    for node, count in zip(graph.nodes, num_bytes, strict=True):
        paths = {"outside"} if node.module is None else set(containing_paths(graph.modules[node.module].path))
        for path in paths:
            found[path] = found.get(path, 0) + count
    return found


def only_known(numbers: dict[str, int], known: dict[str, int]) -> dict[str, int]:
    """Leave out modules that hold nothing, and paths that are no module, such as that of a ModuleList."""
    return {path: count for path, count in numbers.items() if count and path in known}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_view_has_one_number_for_each_module(program: Callable[[], Callable[[], torch.Tensor]]) -> None:
    """Memory, tree, explorer, picture, page, table of saved values and CSV say the same bytes for each module."""
    graph = recorded(program)
    expected = by_memory(graph)
    rows = [0] * len(graph.nodes)
    for row in saved_rows(graph):
        rows[row.node] += row.own_bytes
    labels = ScopeLabels(graph, LIGHT)
    page = json.loads("".join(page_json(graph, DrawOptions())))
    columns = [line.split(",") for line in render_nodes_csv(graph).splitlines()]
    place = columns[0].index("held_bytes") - len(columns[0])
    page_modules = {module[2] or "": module[3] for module in _all_page_modules(page["memory"]["modules"])}

    assert {path for path, count in expected.items() if count} >= set(only_known(by_tree(graph), expected))
    assert only_known(by_tree(graph), expected).items() <= expected.items()
    for view in (
        rows,
        [labels.held_bytes(range(node, node + 1)) for node in range(len(graph.nodes))],
        [node.get("bytes", 0) for node in page["nodes"]],
        [int(line[place]) for line in columns[1:]],
    ):
        assert only_known(by_path(graph, view), expected) == only_known(expected, expected)
    assert {path: count for path, count in expected.items() if path in page_modules} == page_modules | (
        {"": expected[""]} if "" in expected else {}
    )


def _all_page_modules(modules: list[list[object]]) -> list[list[object]]:
    return [module for top in modules if top[1] for module in (top, *_all_page_modules(top[4]))]  # type: ignore[arg-type]


@pytest.mark.parametrize("program", PROGRAMS)
def test_pack_hooks_count_the_same_bytes(program: Callable[[], Callable[[], torch.Tensor]]) -> None:
    """What torch packs in a plain run, without the parameters, is what the head calls held."""
    graph = recorded(program)
    torch.manual_seed(0)
    run = program()
    model = next(cell.cell_contents for cell in run.__closure__ or () if isinstance(cell.cell_contents, nn.Module))
    anyway = {tensor.untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    packed: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        packed[storage._cdata] = storage
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = run()
    theirs = sum(storage.nbytes() for key, storage in packed.items() if key not in anyway)

    assert loss.grad_fn is not None
    assert theirs == measure_memory(graph).extra_bytes == summarize(graph).held_bytes


def test_a_mask_made_inside_a_module_is_an_activation_and_an_argument_an_input() -> None:
    """An input came from outside of the model, by position or by keyword; masks and positions are the model's own."""
    linear, gpt_graph = recorded(autocast), recorded(gpt)
    kinds = measure_memory(gpt_graph)
    inputs = [
        (held.num_bytes, gpt_graph.nodes[held.counted_by].name) for held in kinds.storages if held.held_as == "input"
    ]
    dropout = next(
        value for node in linear.nodes for value in node.saved if node.name == "MulBackward0" and value.tensor
    )

    assert dropout.origin == "activation"
    assert [num_bytes for num_bytes, _ in inputs if num_bytes > 128] == []
    assert inputs
