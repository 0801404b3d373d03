"""Every operator's backward, plain and stepped through: the same bits, and each formula by hand agrees."""

from typing import Any

import pytest
import torch
from step_programs import Silent, forget, leaves_in, stepped
from torch.testing._internal.common_methods_invocations import op_db

from gradinspect.observers.comparing import is_same
from gradinspect.record.outputs import outputs_in

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated operators are swept as well
SAMPLES = 3  # of each operator


def wrong_in(op: Any, dtype: torch.dtype) -> tuple[int, list[str]]:
    """Run an operator's samples; return how many formulas were called by hand, and what was wrong."""
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
        outcome = stepped(outputs, [weight], Silent())
        compared += outcome.num_equal
        if not all(is_same(left, leaf.grad, to_the_bit=True) for left, leaf in zip(expected, leaves, strict=True)):
            wrong.append(f"{op.name}: gradients differ")
        if outcome.differing or outcome.differing_leaves:
            names = [outcome.graph.nodes[number].name for number in outcome.differing]
            wrong.append(f"{op.name}: {names} {outcome.differing_leaves}")
        wrong += [f"{op.name}: {reason}" for reason, _ in outcome.watched if reason.startswith("calling")]
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
    sweep(op_db[::6], torch.float32, 150)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16])
def test_every_operator(dtype: torch.dtype) -> None:
    """All of them, in real, complex and half precision."""
    sweep(op_db, dtype, 300)
