"""The catalogue says of live nodes what torch itself does: which argument each place is for, and what is saved."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
import torch
from dispatch_witness import names_of_places, nodes_below
from torch.nn import functional

from gradinspect.analyses.explain.hand_written import COMPOSED
from gradinspect.catalog import load_catalog

ENTRIES = load_catalog().entries
Made: TypeAlias = tuple[Any, dict[str, torch.Tensor | None]]


def leaves(*shapes: Sequence[int]) -> list[torch.Tensor]:
    """Make tensors that require grad."""
    return [torch.rand(*shape, requires_grad=True) for shape in shapes]


def addmm() -> Made:
    """Three matrices, the bias first."""
    bias, mat1, mat2 = leaves((3,), (2, 4), (4, 3))
    return torch.addmm(bias, mat1, mat2), {"self": bias, "mat1": mat1, "mat2": mat2}


def cat() -> Made:
    """A list."""
    a, b = leaves((2, 3), (1, 3))
    return torch.cat([a, b]), {"tensors[0]": a, "tensors[1]": b}


def stack() -> Made:
    """A list with a constant in it."""
    a, b = leaves((3,), (3,))
    return torch.stack([a, torch.ones(3), b]), {"tensors[0]": a, "tensors[1]": None, "tensors[2]": b}


def convolution_without_bias() -> Made:
    """An optional tensor that is not given."""
    images, weight = leaves((1, 2, 5), (3, 2, 2))
    return torch.conv1d(images, weight, None), {"input": images, "weight": weight, "bias": None}


def lerp() -> Made:
    """Three of a kind."""
    start, end, weight = leaves((3,), (3,), (3,))
    return torch.lerp(start, end, weight), {"self": start, "end": end, "weight": weight}


def where() -> Made:
    """A condition, which has no place."""
    a, b = leaves((3,), (3,))
    return torch.where(torch.tensor([True, False, True]), a, b), {"self": a, "other": b}


def index_put() -> Made:
    """A list of indices between, which has no places."""
    a, values = leaves((3,), (2,))
    return torch.index_put(a, (torch.tensor([0, 2]),), values), {"self": a, "values": values}


def layer_norm_without_bias() -> Made:
    """A bias that is not given, saved all the same."""
    a, weight = leaves((2, 3), (3,))
    return torch.nn.functional.layer_norm(a, (3,), weight), {"input": a, "weight": weight, "bias": None}


def batch_norm() -> Made:
    """Running statistics have no places."""
    a, weight, bias = leaves((4, 3), (3,), (3,))
    made = torch.nn.functional.batch_norm(a, torch.zeros(3), torch.ones(3), weight, bias, training=True)
    return made, {"input": a, "weight": weight, "bias": bias}


def attention() -> Made:
    """Query, key, value, and no mask."""
    query, key, value = leaves((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8))
    made = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return made, {"query": query, "key": key, "value": value}


def index_add() -> Made:
    """An index between."""
    a, source = leaves((3, 2), (2, 2))
    return torch.index_add(a, 0, torch.tensor([0, 1]), source), {"self": a, "source": source}


def scatter() -> Made:
    """A dim and an index between."""
    a, src = leaves((3,), (2,))
    return torch.scatter(a, 0, torch.tensor([0, 1]), src), {"self": a, "src": src}


def embedding() -> Made:
    """The indices have no place, though they come second."""
    (weight,) = leaves((5, 2))
    return torch.nn.functional.embedding(torch.tensor([1, 2]), weight), {"weight": weight}


def cross_entropy_with_weight() -> Made:
    """Target and weight have no places."""
    (scores,) = leaves((2, 3))
    made = torch.nn.functional.nll_loss(scores, torch.tensor([0, 1]), weight=torch.ones(3))
    return made, {"self": scores}


def cdist() -> Made:
    """Two tensors not called self and other."""
    x1, x2 = leaves((2, 3), (4, 3))
    return torch.cdist(x1, x2), {"x1": x1, "x2": x2}


def grid_sample() -> Made:
    """Input and grid."""
    images, grid = leaves((1, 1, 4, 4), (1, 2, 2, 2))
    return torch.nn.functional.grid_sample(images, grid, align_corners=True), {"input": images, "grid": grid}


def prelu() -> Made:
    """A weight behind self."""
    a, weight = leaves((2, 3), (1, 3))
    return torch._prelu_kernel(a, weight), {"self": a, "weight": weight}


def addcmul_in_place() -> Made:
    """The tensor that is changed needs no gradient before."""
    a, tensor1, tensor2 = leaves((3,), (3,), (3,))
    with torch.no_grad():
        changed = a.clone()
    return changed.addcmul_(tensor1, tensor2), {"self": None, "tensor1": tensor1, "tensor2": tensor2}


def foreach_addcmul() -> Made:
    """Three lists."""
    a, b, c, d, e, f = leaves(*[(3,)] * 6)
    made = torch._foreach_addcmul([a, b], [c, d], [e, f])
    names = {"self[0]": a, "self[1]": b, "tensor1[0]": c, "tensor1[1]": d, "tensor2[0]": e, "tensor2[1]": f}
    return made[0], names


def foreach_add_in_place() -> Made:
    """One node for each element, with the class of the plain op."""
    a, b = leaves((3,), (3,))
    changed = [torch.zeros(3), torch.zeros(3)]
    torch._foreach_add_(changed, [a, b])
    return changed[1], {"self": None, "other": b}


KNOWN_OPS = [
    addmm, cat, stack, convolution_without_bias, lerp, where, index_put, layer_norm_without_bias, batch_norm, attention,
    index_add, scatter, embedding, cross_entropy_with_weight, cdist, grid_sample, prelu, addcmul_in_place,
    foreach_addcmul, foreach_add_in_place,
]  # fmt: skip


@pytest.mark.parametrize("make", KNOWN_OPS, ids=lambda make: make.__name__)
def test_each_place_is_named_after_the_argument_that_was_passed(make: Callable[[], Made]) -> None:
    """The leaf behind each place is the tensor that was passed as the argument of that name, None where none was."""
    made, expected = make()
    found = [getattr(next_node, "variable", None) for next_node, _ in made.grad_fn.next_functions]

    assert list(expected) == names_of_places(made.grad_fn)
    assert [id(tensor) for tensor in expected.values()] == [id(tensor) for tensor in found]


def test_lstm_layers_name_their_weights() -> None:
    """The fused layer of the CPU has a place for each weight and state, between them none for flags."""
    lstm = torch.nn.LSTM(3, 4)
    made, _ = lstm(torch.rand(5, 1, 3))
    nodes = [node for node in nodes_below([made.grad_fn]) if node.name() == "MkldnnRnnLayerBackward0"]
    places = dict(zip(names_of_places(nodes[0]), nodes[0].next_functions, strict=True))

    assert list(places) == ["input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"]
    assert places["weight0"][0].variable is lstm.weight_ih_l0
    assert places["weight1"][0].variable is lstm.weight_hh_l0


def test_an_lstm_has_two_hidden_states() -> None:
    """Two lists in one op can be told apart only because the length of `hx` is checked."""
    (state,) = leaves((1, 1, 4))

    with pytest.raises(RuntimeError, match="lstm expects two hidden states"):
        torch.lstm(torch.rand(5, 1, 3), [state], [], True, 1, 0.0, True, False, False)


def test_every_generated_class_is_in_the_catalogue() -> None:
    """Only the classes that are written by hand in C++ are missing."""
    classes = {name for name in dir(torch._C._functions) if "Backward" in name}

    assert classes - set(ENTRIES) == {"CopyBackwards", "SendRpcBackward", "UndefinedGradBackward"}


def test_saved_attributes_are_those_of_the_live_classes() -> None:
    """Each class has the `_saved_*` attributes that the catalogue lists, derived foreach classes have no class."""
    for entry in ENTRIES.values():
        kind = getattr(torch._C._functions, entry.name, None)
        attributes = {name.removeprefix("_saved_") for name in dir(kind) if name.startswith("_saved_")}

        assert kind is not None or entry.name.startswith("Foreach")
        assert attributes == set(entry.saved), entry.name


OUTPUTS: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "result": lambda x: (x.exp(),),
    "indices": lambda x: tuple(x.max(dim=0)),
    "result1": lambda x: torch.native_layer_norm(x, (3,), None, None, 1e-5),
    "U": lambda x: tuple(torch.linalg.svd(x, full_matrices=False)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_saved_output_is_the_tensor_that_the_op_returned(name: str) -> None:
    """What the catalogue calls an output shares its memory with a result of the forward op."""
    (x,) = leaves((2, 3))
    results = OUTPUTS[name](x)
    node = results[0].grad_fn
    saved = getattr(node, f"_raw_saved_{name}").data

    assert name in ENTRIES[node.name()].outputs
    assert saved.untyped_storage()._cdata in {result.untyped_storage()._cdata for result in results}
    assert saved.untyped_storage()._cdata != x.untyped_storage()._cdata


def made(*shape: int) -> torch.Tensor:
    """Make a tensor that requires grad."""
    return leaves(shape)[0]


CLASSES = torch.tensor([0, 1])
COMPOSITIONS: dict[str, Callable[..., torch.Tensor]] = {
    "batch_norm": lambda: functional.batch_norm(made(2, 3, 4), torch.zeros(3), torch.ones(3), training=True),
    "chunk": lambda: made(4, 3).chunk(2)[0],
    "conv1d": lambda: functional.conv1d(*leaves((2, 3, 8), (4, 3, 3))),
    "conv2d": lambda: functional.conv2d(*leaves((2, 3, 8, 8), (4, 3, 3, 3))),
    "conv3d": lambda: functional.conv3d(*leaves((1, 2, 4, 4, 4), (2, 2, 2, 2, 2))),
    "conv_transpose1d": lambda: functional.conv_transpose1d(*leaves((2, 3, 8), (3, 4, 3))),
    "conv_transpose2d": lambda: functional.conv_transpose2d(*leaves((2, 3, 8, 8), (3, 4, 3, 3))),
    "cross_entropy_loss": lambda: functional.cross_entropy(made(2, 3), CLASSES),
    "dropout": lambda: functional.dropout(made(2, 3)),
    "einsum": lambda: torch.einsum("bij,bjk->bik", *leaves((2, 3, 4), (2, 4, 5))),
    "embedding_bag": lambda: functional.embedding_bag(torch.tensor([[0, 1]]), made(4, 3)),
    "flatten": made(2, 3).flatten,
    "group_norm": lambda: functional.group_norm(made(2, 4, 3), 2),
    "instance_norm": lambda: functional.instance_norm(made(2, 3, 4)),
    "layer_norm": lambda: functional.layer_norm(made(2, 3), (3,)),
    "linear": lambda: functional.linear(*leaves((2, 3), (4, 3), (4,))),
    "log_softmax": lambda: torch.log_softmax(made(2, 3), 1),
    "matmul": lambda: torch.matmul(*leaves((2, 3, 4), (2, 4, 5))),
    "max_pool2d": lambda: functional.max_pool2d(made(1, 2, 4, 4), 2),
    "narrow": lambda: made(4).narrow(0, 0, 2),
    "nll_loss": lambda: functional.nll_loss(made(2, 3), CLASSES),
    "norm": made(3).norm,
    "outer": lambda: torch.outer(*leaves((2,), (3,))),
    "pad": lambda: functional.pad(made(2, 3), (1, 1)),
    "reshape": lambda: made(2, 3).reshape(3, 2),
    "scaled_dot_product_attention": lambda: functional.scaled_dot_product_attention(*leaves(*[(1, 2, 4, 8)] * 3)),
    "selu": lambda: functional.selu(made(3)),
    "softmax": lambda: torch.softmax(made(2, 3), 1),
    "square": made(3).square,
}


@pytest.mark.parametrize("name", COMPOSED)
def test_what_a_composed_function_makes(name: str) -> None:
    """As the engine has it."""
    found = {node.name() for node in nodes_below([COMPOSITIONS[name]().grad_fn])}

    assert set(COMPOSED[name]) <= found
    assert all(node in ENTRIES for node in COMPOSED[name])
