"""Every operator's backward, plain and measured: the same bits, and every node is measured."""

from typing import Any

import pytest
import torch
from operator_sweep import operators, plain_runs, sweep

from gradinspect.analyses.gradients.observed import gradients_of
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.recording.capture import Moment, record_graph

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated operators are swept as well


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
    for run in plain_runs(op, dtype):
        meter = GradientMeter(record_graph(run.outputs, Moment(source="sweep")), run.outputs)
        run.output.backward(run.weight, retain_graph=True)
        found = meter.finish()
        compared += 1
        if not all(same_bits(left, leaf.grad) for left, leaf in zip(run.expected, run.leaves, strict=True)):
            wrong.append(f"{op.name}: gradients differ")
        if len(gradients_of(found).nodes) != len(found.nodes):
            wrong.append(f"{op.name}: {len(gradients_of(found).nodes)} of {len(found.nodes)} nodes")
    return compared, wrong


@pytest.mark.slow
def test_every_twelfth_operator() -> None:
    """A shortened sweep."""
    sweep(wrong_in, operators()[::12], torch.float32, 50)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16])
def test_every_operator(dtype: torch.dtype) -> None:
    """All of them, in real, complex and half precision."""
    sweep(wrong_in, operators(), dtype, 300)
