"""A walk through common operators: every attribute a reader of `dir(grad_fn)` sees is in our table, with its value."""

import runpy
from pathlib import Path

import pytest
import torch
from saved_witness import SavedWitness

from gradinspect.analyses.memory.saved_rows import SavedRow, saved_rows
from gradinspect.graph import Graph

SAMPLE = Path(__file__).parent.parent.parent / "samples" / "operators.py"
EPS = "eps " if hasattr(torch._C._functions.NativeGroupNormBackward0, "_saved_eps") else ""  # not from torch 2.14 on
CONVOLUTION = "bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight"

# Node class, and what it saves under the names of torch 2.13, without the `_saved_` in front.
# Against torch 1.13, view has taken the place of ReshapeAlias, and mean keeps the number of elements, not the tensor.
EXPECTED = {
    "ConvolutionBackward0": CONVOLUTION,
    "AddmmBackward0": "alpha beta mat1 mat1_sym_sizes mat1_sym_strides mat2 mat2_sym_sizes mat2_sym_strides",
    "NativeBatchNormBackward0": "eps input result1 result2 running_mean running_var training weight",
    "NativeLayerNormBackward0": "bias input normalized_shape result1 result2 weight",
    "NativeGroupNormBackward0": f"C HxW N {EPS}group input result1 result2 weight",
    "AddBackward0": "alpha",
    "SubBackward0": "alpha",
    "MulBackward0": "other self",
    "DivBackward0": "other self",
    "UnsafeViewBackward0": "self_sym_sizes",
    "BmmBackward0": "mat2 self",
    "MmBackward0": "mat2 mat2_sym_sizes mat2_sym_strides self self_sym_sizes self_sym_strides",
    "CatBackward0": "dim",
    "SplitBackward0": "dim self_sym_sizes split_size",
    "ViewBackward0": "self_sym_sizes",
    "CloneBackward0": "",
    "PermuteBackward0": "dims",
    "SqueezeBackward0": "self_sym_sizes",
    "UnsqueezeBackward0": "dim",
    "TransposeBackward0": "dim0 dim1",
    "SliceBackward0": "dim end self_sym_sizes start step",
    "ExpandBackward0": "self_sym_sizes",
    "ReluBackward0": "result",
    "SiluBackward0": "self",
    "GeluBackward0": "approximate self",
    "HardswishBackward0": "self",
    "SigmoidBackward0": "result",
    "TanhBackward0": "result",
    "SoftmaxBackward0": "dim result",
    "LogSoftmaxBackward0": "dim result",
    "MeanBackward1": "dim keepdim self_sym_numel self_sym_sizes",
    "MaxPool2DWithIndicesBackward0": "ceil_mode dilation kernel_size padding result1 self stride",
    "AvgPool2DBackward0": "ceil_mode count_include_pad divisor_override kernel_size padding self stride",
    "UpsampleBilinear2DBackward0": "align_corners output_size scales_h scales_w self_sym_sizes",
    "UpsampleNearest2DBackward0": "output_size scales_h scales_w self_sym_sizes",
    "UpsampleBicubic2DBackward0": "align_corners output_size scales_h scales_w self_sym_sizes",
}


@pytest.fixture(scope="module")
def checked() -> tuple[Graph, SavedWitness]:
    """The graph of all operators, compared with the live nodes."""
    witness = SavedWitness()
    outputs = list(runpy.run_path(str(SAMPLE))["outputs"].values())
    graph = witness.check([output for output in outputs if isinstance(output, torch.Tensor)])
    return graph, witness


def test_every_value_is_the_live_one(checked: tuple[Graph, SavedWitness]) -> None:
    """Each attribute of each live node is in the record, with kind, shape, strides, version and value."""
    _, witness = checked

    assert witness.wrong == []
    assert sum(witness.kinds.values()) > 150


@pytest.mark.parametrize("node_class", EXPECTED)
def test_the_table_has_each_attribute(node_class: str, checked: tuple[Graph, SavedWitness]) -> None:
    """Under the installed torch's names, each with something to read in the value column."""
    graph, _ = checked
    nodes = [number for number, node in enumerate(graph.nodes) if node.name == node_class]
    rows = [row for row in saved_rows(graph) if row.node_name == node_class]
    expected = {f"_saved_{name}" for name in EXPECTED[node_class].split()}

    assert nodes
    for number in nodes:
        own = {row.attribute: row for row in rows if row.node == number}
        assert set(own) == expected
        assert all(row.value for row in own.values())


def test_some_values_by_hand(checked: tuple[Graph, SavedWitness]) -> None:
    """What the operators were called with, as one reads it in the program."""
    graph, _ = checked

    def values(node_class: str) -> list[dict[str, str]]:
        found: dict[int, list[SavedRow]] = {}
        for row in saved_rows(graph):
            if row.node_name == node_class:
                found.setdefault(row.node, []).append(row)
        return [{row.attribute.removeprefix("_saved_"): row.value for row in rows} for rows in found.values()]

    (pool,) = values("MaxPool2DWithIndicesBackward0")
    convolutions = values("ConvolutionBackward0")

    assert (pool["kernel_size"], pool["self"], pool["result1"]) == ("(2, 2)", "f32[1, 3, 4, 4]", "i64[1, 3, 2, 2]")
    assert sorted(c["groups"] for c in convolutions) == ["1", "1", "1", "1", "3"]
    assert sorted(c["dilation"] for c in convolutions) == ["(1)", "(1, 1)", "(1, 1)", "(1, 1, 1)", "(2, 2)"]
    assert values("GeluBackward0")[0]["approximate"] == "'none'"
    assert [(s["start"], s["end"], s["step"]) for s in values("SliceBackward0")] == [("2", "8", "2")]
