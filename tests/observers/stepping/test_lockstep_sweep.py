"""Every operator's backward, plain and stepped through: the same bits, and each formula by hand agrees."""

from typing import Any

import pytest
import torch
from operator_sweep import operators, plain_runs, sweep
from step_programs import Silent, stepped

from gradinspect.observers.gradients.comparing import is_same

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated operators are swept as well


def wrong_in(op: Any, dtype: torch.dtype) -> tuple[int, list[str]]:
    """Run an operator's samples; return how many formulas were called by hand, and what was wrong."""
    compared, wrong = 0, []
    for run in plain_runs(op, dtype):
        outcome = stepped(run.outputs, [run.weight], Silent())
        compared += outcome.num_equal
        if not all(
            is_same(left, leaf.grad, to_the_bit=True) for left, leaf in zip(run.expected, run.leaves, strict=True)
        ):
            wrong.append(f"{op.name}: gradients differ")
        if outcome.differing or outcome.differing_leaves:
            names = [outcome.graph.nodes[number].name for number in outcome.differing]
            wrong.append(f"{op.name}: {names} {outcome.differing_leaves}")
        wrong += [f"{op.name}: {reason}" for reason, _ in outcome.watched if reason.startswith("calling")]
    return compared, wrong


@pytest.mark.slow
def test_every_twelfth_operator() -> None:
    """A shortened sweep."""
    sweep(wrong_in, operators()[::12], torch.float32, 75)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16])
def test_every_operator(dtype: torch.dtype) -> None:
    """All of them, in real, complex and half precision."""
    sweep(wrong_in, operators(), dtype, 300)
