"""Floating point operations of nodes: torch's own counter, over the same forward and backward, finds the same."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from gradinspect.graph import Edge, Node, SavedTensor, SavedValue, TensorInfo
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.flops import UNKNOWN, Flops, FlopTable
from gradinspect.torch_api import flops


def saved_tensor(info: TensorInfo) -> SavedTensor:
    """A saved tensor of which only the shape matters."""
    return SavedTensor(info, 0)


def _flops_of(node: Node, table: FlopTable | None = None) -> Flops:
    return (table or FlopTable()).of_node(node.name, node.forward_outputs, node.saved, node.next_edges)


def attention(x: torch.Tensor) -> torch.Tensor:
    """Attention by matrix products."""
    query, key, value = x.view(2, 7, 3, 4, 4).permute(2, 0, 3, 1, 4)
    with sdpa_kernel(SDPBackend.MATH):
        return nn.functional.scaled_dot_product_attention(query, key, value)


def second_order() -> torch.Tensor:
    """Products that a backward has made."""
    x = torch.randn(6, 6, requires_grad=True)
    return torch.autograd.grad((x @ x).square().sum(), x, create_graph=True)[0]


LEAF = torch.randn(3, 2, 4, requires_grad=True)
DATA = torch.randn(3, 4, 5)
PERCEPTRON = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4, bias=False))
CONVOLUTIONS = nn.Sequential(
    nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=4), nn.ConvTranspose2d(8, 4, 2, 2)
)
LINES = nn.Sequential(nn.Conv1d(3, 8, 3, dilation=2), nn.ConvTranspose1d(8, 6, 3, 2, groups=2))
ENCODER = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
PROGRAMS: dict[str, Callable[[], Any]] = {
    "a perceptron": lambda: PERCEPTRON(torch.randn(5, 8)),
    "in three dimensions": lambda: PERCEPTRON(torch.randn(2, 5, 8)),
    "convolutions of data": lambda: CONVOLUTIONS(torch.randn(2, 3, 16, 16)),
    "convolutions of a leaf": lambda: LINES(torch.randn(2, 3, 16, requires_grad=True)),
    "attention": lambda: attention(torch.randn(2, 7, 48, requires_grad=True)),
    "an encoder": lambda: ENCODER(torch.randn(2, 6, 16)),
    "batches, the second a constant": lambda: torch.bmm(LEAF, DATA),
    "batches, the first a constant": lambda: torch.bmm(DATA.mT, LEAF.mT),
    "a sum and batches": lambda: torch.baddbmm(torch.zeros(3, 2, 5), LEAF, DATA),
    "an einsum": lambda: torch.einsum("bij,bjk->bik", LEAF, DATA),
    "a derivative": second_order,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_counts_the_same(name: str) -> None:
    """Over the forward pass and over backward, in total."""
    with FlopCounterMode(display=False) as forward:
        out = PROGRAMS[name]()
    graph = capture_graph(out.sum())
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()

    assert sum(node.flops or 0 for node in graph.nodes) == forward.get_total_flops() > 0
    assert sum(node.backward_flops or 0 for node in graph.nodes) == backward.get_total_flops() > 0


def test_what_torch_has_no_formula_for_is_unknown() -> None:
    """And not zero."""
    nodes = capture_graph((LEAF.exp() @ torch.randn(4)).sum()).nodes

    assert {(node.flops, node.backward_flops) for node in nodes} == {(None, None)}


@pytest.mark.parametrize("operator", ["Flash", "Efficient", "Cudnn"])
def test_attention_of_other_devices(operator: str) -> None:
    """From the shapes of a record; two products forward, five in backward, of which one is done anew."""
    info = TensorInfo((2, 4, 7, 8), "float32")
    saved = tuple(
        SavedValue(name=f"_saved_{name}", kind="tensor", tensor=saved_tensor(info))
        for name in ("query", "key", "value")
    )
    edges = (Edge(1), Edge(2), Edge(3))
    node = Node(
        name=f"ScaledDotProduct{operator}AttentionBackward0", kind="generated", saved=saved, next_edges=edges,
        forward_outputs=(info,),
    )  # fmt: skip
    product = 2 * 2 * 4 * 7 * 7 * 8

    assert _flops_of(node) == (2 * product, 5 * product)


@pytest.mark.parametrize("shape", [("batch", 4), (4,), ()])
def test_a_shape_that_is_no_matrix_is_unknown(shape: tuple[int | str, ...]) -> None:
    """Symbolic sizes, and what a file may say."""
    info = TensorInfo(shape, "float32")
    saved = (SavedValue(name="_saved_self", kind="tensor", tensor=saved_tensor(info)),)
    node = Node(name="MmBackward0", kind="generated", saved=saved, forward_outputs=(info,))

    assert _flops_of(node).forward is None
    assert _flops_of(Node(name="MmBackward0", kind="generated")) == UNKNOWN


def test_nodes_of_one_capture_are_counted_by_their_own_shapes_and_edges() -> None:
    """What is alike is counted once; another shape, or a gradient that is not wanted, has a count of its own."""
    table = FlopTable()
    matrix, wider = TensorInfo((2, 2), "float32"), TensorInfo((2, 3), "float32")

    def product(right: TensorInfo, *edges: Edge | None) -> Flops:
        saved = tuple(
            SavedValue(name=name, kind="tensor", tensor=saved_tensor(info))
            for name, info in (("_saved_self", matrix), ("_saved_mat2", right))
        )
        node = Node(name="MmBackward0", kind="generated", saved=saved, forward_outputs=(right,), next_edges=edges)
        return _flops_of(node, table)

    for _ in range(2):
        assert product(matrix, Edge(1), Edge(2)) == (16, 32)
        assert product(matrix, None, Edge(2)) == (16, 16)
        assert product(wider, Edge(1), Edge(2)) == (24, 48)


def test_calls_of_equal_shapes_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers of a model have few shapes, and torch's formula takes longer than recording a node."""
    asked = []

    def formula(*shapes: object, out_val: object) -> int:
        asked.append((shapes, out_val))
        return 7

    monkeypatch.setattr(flops, "_formulas", lambda: {torch.ops.aten.mm: formula})
    flops.operator_flops.cache_clear()
    counts = [flops.operator_flops("mm", (2, 3), (3, width), out=(2, width)) for width in (4, 4, 5, 4)]
    flops.operator_flops.cache_clear()

    assert counts == [7] * 4
    assert len(asked) == 2


MATRICES = {"out": (2, 5), "self": (2, 3), "mat2": (3, 5)}
BATCHES = {"out": (7, 2, 5), "self": (7, 2, 3), "mat2": (7, 3, 5)}
IMAGES = {"out": (2, 4, 5, 5), "input": (2, 3, 7, 7), "weight": (4, 3, 3, 3)}


def known_of(name: str, shapes: Mapping[str, tuple[int, ...]], *missing: str) -> Flops:
    """Count a node of which some shapes are not recorded."""
    infos = {key: TensorInfo(shape, "float32") for key, shape in shapes.items() if key not in missing}
    options: dict[str, Any] = {
        "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "transposed": False, "output_padding": (0, 0),
        "groups": 1,
    }  # fmt: skip
    saved = [
        *(SavedValue(name=f"_saved_{key}", kind="tensor", tensor=saved_tensor(info)) for key, info in infos.items()),
        *(SavedValue(name=f"_saved_{key}", kind="tuple", value=value) for key, value in options.items()),
    ]
    node = Node(
        name=name, kind="generated", saved=tuple(saved), next_edges=(Edge(1), Edge(2)),
        forward_outputs=(infos.get("out"),),
    )  # fmt: skip
    return _flops_of(node)


@pytest.mark.parametrize(("name", "shapes"), [("MmBackward0", MATRICES), ("BmmBackward0", BATCHES)])
def test_an_operand_that_is_not_saved_follows_from_the_other_one(
    name: str, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """With the output; without two of the three nothing is known."""
    product = 2 * 2 * 3 * 5 * (7 if name == "BmmBackward0" else 1)

    assert {known_of(name, shapes, *missing) for missing in ((), ("self",), ("mat2",), ("out",))} == {
        (product, 2 * product)
    }
    for missing in (("self", "mat2"), ("self", "out"), ("mat2", "out")):
        assert known_of(name, shapes, *missing) == UNKNOWN


@pytest.mark.parametrize("missing", [(), ("input",), ("weight",), ("out",)])
def test_a_convolution_needs_all_of_its_shapes(missing: tuple[str, ...]) -> None:
    """Those of the input, the weight and the output."""
    count = 2 * 2 * 25 * 4 * 27

    assert known_of("ConvolutionBackward0", IMAGES, *missing) == (UNKNOWN if missing else (count, 2 * count))


@pytest.mark.parametrize(
    ("edges", "times"),
    [((Edge(1), None, None), 0), ((None, Edge(1), None), 1), ((None, None, Edge(1)), 1), ((Edge(1),) * 3, 2)],
)
def test_backward_computes_a_product_for_each_factor_that_learns(edges: tuple[Edge | None, ...], times: int) -> None:
    """And none for what is added."""
    infos = {"mat1": TensorInfo((2, 3), "float32"), "mat2": TensorInfo((3, 5), "float32")}
    saved = tuple(
        SavedValue(name=f"_saved_{key}", kind="tensor", tensor=saved_tensor(info)) for key, info in infos.items()
    )
    node = Node(
        name="AddmmBackward0", kind="generated", saved=saved, next_edges=edges,
        forward_outputs=(TensorInfo((2, 5), "float32"),),
    )  # fmt: skip

    assert _flops_of(node) == Flops(60, 60 * times)
