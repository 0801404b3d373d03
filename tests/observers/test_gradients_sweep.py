"""Every operator's backward, plain and measured: the same bits, and every node is measured."""

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from gradinspect.analyses.gradients.observed import gradients_of
from gradinspect.observers.gradients import GradientMeter
from gradinspect.record.capture import Moment, record_graph
from gradinspect.record.outputs import outputs_in

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated operators are swept as well
SAMPLES = 3  # of each operator


def leaves_in(value: Any) -> list[torch.Tensor]:
    """List the leaves among an operator's arguments."""
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad and value.is_leaf else []
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves_in(item)]
    return []


def forget(leaves: list[torch.Tensor]) -> None:
    """Remove the gradients."""
    for leaf in leaves:
        leaf.grad = None


def same_bits(left: torch.Tensor | None, right: torch.Tensor | None) -> bool:
    """Compare two gradients; what is not a number is equal to itself."""
    if left is None or right is None:
        return left is right
    if left.layout is not torch.strided:
        left, right = left.to_dense(), right.to_dense()
    return bool(torch.equal(left.isnan(), right.isnan()) and torch.equal(left.nan_to_num(), right.nan_to_num()))


def wrong_in(op: Any, dtype: torch.dtype) -> tuple[int, list[str]]:
    """Run an operator's samples; return how many were compared, and what was wrong."""
    compared, wrong = 0, []
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=True)):
        if number == SAMPLES:
            break
        leaves = leaves_in([sample.input, *sample.args, *sample.kwargs.values()])
        outputs = outputs_in(op(sample.input, *sample.args, **sample.kwargs))
        tensors = [output.value for output in outputs if isinstance(output.value, torch.Tensor)]
        if not leaves or len(tensors) != 1 or tensors[0].is_leaf or tensors[0].layout is not torch.strided:
            continue
        weight = torch.ones_like(tensors[0])
        forget(leaves)  # samples may share tensors
        tensors[0].backward(weight, retain_graph=True)
        expected = [leaf.grad for leaf in leaves]
        forget(leaves)
        meter = GradientMeter(record_graph(outputs, Moment(source="sweep")), outputs)
        tensors[0].backward(weight, retain_graph=True)
        found = meter.finish()
        compared += 1
        if not all(same_bits(left, leaf.grad) for left, leaf in zip(expected, leaves, strict=True)):
            wrong.append(f"{op.name}: gradients differ")
        if len(gradients_of(found).nodes) != len(found.nodes):
            wrong.append(f"{op.name}: {len(gradients_of(found).nodes)} of {len(found.nodes)} nodes")
    return compared, wrong


def sweep(ops: list[Any], dtype: torch.dtype, at_least: int) -> None:
    """Compare the samples of many operators."""
    compared, wrong = 0, []
    for op in ops:
        if op.supports_autograd and dtype in op.supported_dtypes("cpu"):
            try:
                number, found = wrong_in(op, dtype)
            except (RuntimeError, NotImplementedError, TypeError, ValueError):  # a sample that has no backward here
                continue
            compared += number
            wrong += found

    assert wrong == []
    assert compared >= at_least


def test_every_sixth_operator() -> None:
    """A shortened sweep."""
    sweep(op_db[::6], torch.float32, 100)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16])
def test_every_operator(dtype: torch.dtype) -> None:
    """All of them, in real, complex and half precision."""
    sweep(op_db, dtype, 300)
