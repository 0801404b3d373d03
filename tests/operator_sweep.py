"""Run torch's operators backward as they are, so that a test can run them again with something of ours beside.

NOTE [Samples of torch]
Torch's own lists of operators and modules take seconds to import, and hold more objects than all else that the tests
import. So each sweep imports them as it runs, and one worker runs all shortened sweeps: conftest.py.
"""

import gc
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from step_programs import forget, leaves_in

from gradinspect.recording.outputs import OutputTensor, outputs_in

SAMPLES = 3  # of each operator


class PlainRun(NamedTuple):
    """One sample of an operator whose backward has run, and whose leaves are without gradients again."""

    outputs: list[OutputTensor]
    output: torch.Tensor
    weight: torch.Tensor  # what backward began with
    leaves: list[torch.Tensor]
    expected: list[torch.Tensor | None]  # the gradients that the leaves got


@cache
def operators() -> list[Any]:
    """Return torch's own list of its operators. NOTE [Samples of torch]."""
    from torch.testing._internal.common_methods_invocations import op_db

    gc.freeze()  # as in conftest.py
    return list(op_db)


def modules() -> list[Any]:
    """Return torch's own list of its modules. NOTE [Samples of torch]."""
    from torch.testing._internal.common_modules import module_db

    return list(module_db)


def plain_runs(op: Any, dtype: torch.dtype) -> Iterator[PlainRun]:
    """Run the first samples of an operator that have one strided output with a graph."""
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
        yield PlainRun(outputs, tensors[0], weight, leaves, expected)


def sweep(
    wrong_in: Callable[[Any, torch.dtype], tuple[int, list[str]]], ops: list[Any], dtype: torch.dtype, at_least: int
) -> None:
    """Compare the samples of many operators.

    Args:
        wrong_in: Returns how many comparisons an operator gave, and what was wrong.
        ops: The operators.
        dtype: Of the samples.
        at_least: How many comparisons there must be.
    """
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
