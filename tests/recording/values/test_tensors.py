"""Descriptions of live tensors."""

from typing import Any

import pytest
import torch

from gradinspect.graph import TensorInfo
from gradinspect.recording.values.tensors import TensorInfoTable, count_bytes, plain_size
from gradinspect.torch_api.patching.classes import identities


class Loud(torch.Tensor):
    """A subclass."""


class Uncountable(torch.Tensor):
    """A subclass that does not know its size."""

    def numel(self) -> int:
        """Fail."""
        raise NotImplementedError


def test_a_plain_tensor_is_described_once() -> None:
    """Shape, dtype and device; equal ones share a description, a parameter is no subclass."""
    table = TensorInfoTable()
    first = table.of_tensor(torch.ones(2, 3))

    assert first == TensorInfo(shape=(2, 3), dtype="float32", device="cpu")
    assert table.of_tensor(torch.nn.Parameter(torch.zeros(2, 3))) is first
    assert table.of_plain_tensor(torch.ones(2, 3)) is first
    assert table.of_tensor(torch.ones(2, 3, dtype=torch.int8)) == TensorInfo(shape=(2, 3), dtype="int8")
    assert table.of_tensor(torch.ones(2, device="meta")).device == "meta"
    assert not table.has_local_shapes


def test_a_subclass_is_named_unless_it_counts_as_plain() -> None:
    """A fake tensor stands for a plain one."""
    loud = torch.ones(2).as_subclass(Loud)

    assert TensorInfoTable().of_tensor(loud) == TensorInfo(shape=(2,), dtype="float32", subclass=f"{__name__}.Loud")
    assert TensorInfoTable(identities(torch.Tensor, Loud)).of_tensor(loud) == TensorInfo(shape=(2,), dtype="float32")


PROTOTYPE = "ignore:The PyTorch API of nested tensors"


@pytest.mark.filterwarnings(PROTOTYPE)
def test_other_layouts_are_named() -> None:
    """A ragged dimension is a star."""
    parts = [torch.ones(2), torch.ones(3)]
    nested = torch.nested.nested_tensor(parts)
    wide = torch.nested.nested_tensor([part[:, None].expand(-1, 4) for part in parts])
    infos = [TensorInfoTable().of_tensor(tensor) for tensor in (torch.eye(3).to_sparse(), nested, wide)]

    assert [(info.shape, info.layout, info.dtype) for info in infos] == [
        ((3, 3), "sparse_coo", "float32"), ((2, "*"), "nested", "float32"), ((2, "*", 4), "nested", "float32"),
    ]  # fmt: skip


@pytest.mark.filterwarnings(PROTOTYPE)
def test_a_node_describes_what_its_forward_op_made() -> None:
    """As a tensor of that shape is described, nested ones without a shape."""
    table = TensorInfoTable()
    y: Any = torch.ones(2, 3, requires_grad=True) * 2
    nested: Any = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True).sin()

    (described,) = table.of_outputs(y.grad_fn._input_metadata)
    assert described is table.of_tensor(y)
    assert table.of_outputs(nested.grad_fn._input_metadata) == (TensorInfo(shape=(), dtype="float32", layout="nested"),)


def test_a_node_with_several_outputs_has_an_info_for_each() -> None:
    """In their order; equal ones are the same."""
    table = TensorInfoTable()
    parts: Any = torch.ones(5, requires_grad=True).split([2, 1, 2])
    first, second, third = table.of_outputs(parts[0].grad_fn._input_metadata)

    assert [info.shape for info in (first, second, third)] == [(2,), (1,), (2,)]
    assert first is third


def test_a_symbolic_size_is_its_symbol() -> None:
    """It is not evaluated, which would add a guard."""

    class Symbol:
        def __str__(self) -> str:
            return "s0"

    assert (plain_size(3), plain_size(Symbol())) == (3, "s0")


@pytest.mark.filterwarnings(PROTOTYPE)
def test_the_bytes_of_a_tensor() -> None:
    """Of its elements, not of its memory; the methods of a subclass are not called."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])

    assert count_bytes(torch.ones(2, 3, dtype=torch.float64)) == 48
    assert count_bytes(torch.ones(4).expand(5, 4)) == 80
    assert count_bytes(torch.ones(3, device="meta")) == 12
    assert count_bytes(nested) == 20
    assert count_bytes(torch.ones(2).as_subclass(Uncountable)) == 8
