"""Numbers and values of a live tensor."""

import warnings
from typing import Any

import pytest
import torch

from gradinspect.analyses.gradients.stepping import TensorPreview
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.values.tensor_preview import show_saved, show_tensor


def test_a_small_tensor_has_its_values_and_numbers() -> None:
    """Norm, bounds, zeros; nothing of it is recorded as an operation."""
    x = torch.tensor([[3.0, 0.0], [0.0, -4.0]], requires_grad=True)

    assert show_tensor(x) == TensorPreview(
        shape=(2, 2), dtype="float32", values=(3.0, 0.0, 0.0, -4.0), norm=5.0, low=-4.0, high=3.0, num_zeros=2,
        num_nonfinite=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, float("nan"), float("inf")], {"num_nonfinite": 2, "num_zeros": 0}),
        ([1e30, 1e30], {"num_nonfinite": 0, "num_zeros": 0}),  # whose norm overflows
        ([0, 5, 0], {"values": (0, 5, 0), "num_zeros": 2, "norm": None}),
        ([True, False, True], {"values": (True, False, True), "num_zeros": 1, "norm": None}),
        ([3 + 4j, 0j], {"values": ("(3+4j)", "0j"), "low": 0.0, "high": 5.0, "norm": 5.0, "num_zeros": 1}),
        ([], {"values": (), "norm": None, "num_zeros": 0}),
    ],
)
def test_the_numbers_of_other_tensors(values: list[Any], expected: dict[str, object]) -> None:
    """What is not finite, whole numbers, truth values, complex ones by their size, and none."""
    preview = show_tensor(torch.tensor(values))

    assert {name: getattr(preview, name) for name in expected} == expected


def test_values_are_there_up_to_a_number_of_them() -> None:
    """Sixty-four, unless fewer are asked for; then there are numbers only."""
    values = torch.arange(64.0)

    assert len(show_tensor(values).values or ()) == 64
    assert show_tensor(torch.arange(65.0)).values is None
    assert show_tensor(values, 63).values is None
    assert show_tensor(torch.arange(65.0)).high == 64.0


def test_half_precision_is_computed_in_single() -> None:
    """Its own norm would overflow."""
    assert show_tensor(torch.full((4,), 60000.0, dtype=torch.float16)).norm == 120000.0


def test_a_sparse_tensor_is_read_as_a_dense_one() -> None:
    """Zeros that it does not hold count."""
    assert show_tensor(torch.eye(3).to_sparse()).num_zeros == 6


def test_what_cannot_be_read_has_a_shape_only() -> None:
    """A tensor without memory, and one whose memory was given back."""
    gone = torch.ones(3)
    gone.untyped_storage().resize_(0)

    assert show_tensor(torch.ones(2, 3, device="meta")) == TensorPreview(shape=(2, 3), dtype="float32")
    assert show_tensor(gone) == TensorPreview(shape=(3,), dtype="float32")


@pytest.mark.parametrize(("layout", "shape"), [(torch.jagged, (2, "j", 4)), (torch.strided, (2, "*", 4))])
def test_a_nested_tensor_has_a_size_that_is_no_number(layout: torch.layout, shape: tuple[int | str, ...]) -> None:
    """No figures are taken of it, and it counts as neither empty nor zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.zeros(2, 4), torch.zeros(3, 4)], layout=layout)
    preview = show_tensor(nested)

    assert tuple(size.rstrip("0123456789") if isinstance(size, str) else size for size in preview.shape) == shape
    assert preview == TensorPreview(shape=preview.shape, dtype="float32")
    assert not preview.is_zero


def test_what_a_node_saves_is_shown_by_name() -> None:
    """Tensors with their numbers, other values as text, elements of lists with their place, and what is gone."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.stack([x, x])
    z = y.pow(2)
    graph = capture_graph(z)
    node: Any = z.grad_fn
    shown = {one.name: one for one in show_saved(node, graph.nodes[0])}
    z.sum().backward()
    freed = {one.name: (one.tensor, one.text) for one in show_saved(node, capture_graph(z).nodes[0])}

    assert shown["exponent"].text == "2"
    assert shown["self"].tensor is not None
    assert shown["self"].tensor.values == (1.0, 2.0, 1.0, 2.0)
    assert shown["self"].text == ""
    assert freed["self"] == (None, "freed")


class Both(torch.autograd.Function):
    """Saves two tensors."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Double."""
        ctx.save_for_backward(x, x + 1)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Double."""
        return grad * 2


def test_elements_of_a_list_have_their_place() -> None:
    """A custom Function saves a list."""
    y = Both.apply(torch.ones(1, requires_grad=True))
    shown = {one.name: one.tensor and one.tensor.values for one in show_saved(y.grad_fn, capture_graph(y).nodes[0])}

    assert (shown["saved_tensors[0]"], shown["saved_tensors[1]"]) == ((1.0,), (2.0,))


def test_saved_values_are_named_as_torch_names_them() -> None:
    """Whatever the variable is called that they were in."""

    def look() -> list[str]:  # its variables have names
        values = torch.ones(2, requires_grad=True)
        result = values * values
        return [preview.name for preview in show_saved(result.grad_fn, capture_graph(result).nodes[0])]

    assert look() == ["other", "self"]
