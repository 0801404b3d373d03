"""What is read from formulas about double backward, against what the engine does."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from operator_sweep import operators

from gradinspect.analyses.explain.double_backward import double_backward
from gradinspect.catalog import Catalog, load_catalog

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated operators are swept as well
SAMPLES = 3  # of each operator


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def samples(op: Any) -> Iterator[tuple[Any, list[torch.Tensor]]]:
    """Yield (output, leaves) where the output's node leads to leaves only, so that its backward is all there is."""
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=True)):
        if number == SAMPLES:
            return
        leaves = list(tensors_in([sample.input, *sample.args, *sample.kwargs.values()]))
        leaves = [tensor for tensor in leaves if tensor.requires_grad and tensor.is_leaf]
        for output in tensors_in(op(sample.input, *sample.args, **sample.kwargs)):
            if output.requires_grad and output.layout is torch.strided and not output.is_leaf:
                after = [node.name() for node, _ in output.grad_fn.next_functions if node is not None]
                if all(name.endswith("AccumulateGrad") for name in after):
                    yield output, leaves


def works(output: torch.Tensor, leaves: list[torch.Tensor]) -> bool | None:
    """Differentiate a backward; None when there is nothing to differentiate."""
    weight = torch.ones_like(output, requires_grad=True)
    gradients = torch.autograd.grad(output, leaves, weight, create_graph=True, allow_unused=True)
    sums = [gradient.sum() for gradient in gradients if gradient is not None and gradient.requires_grad]
    if not sums:
        return None
    try:
        torch.autograd.grad(torch.stack(sums).sum(), [*leaves, weight], allow_unused=True)
    except RuntimeError as error:
        return None if "not implemented" not in str(error) else False
    return True


def sweep(ops: list[Any], catalog: Catalog) -> dict[str, set[bool]]:
    """Return for each class that was met whether its backward could be differentiated."""
    found: dict[str, set[bool]] = defaultdict(set)
    for op in ops:
        if not op.supports_autograd or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        try:
            for output, leaves in samples(op):
                name = output.grad_fn.name()
                result = works(output, leaves) if name in catalog.entries else None
                if result is not None:
                    found[name].add(result)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):  # a sample that cannot be made here
            continue
    return found


def check(ops: list[Any], at_least: int) -> None:
    """Compare every class with the verdict that is read from its formulas."""
    catalog = load_catalog()
    found = sweep(ops, catalog)
    wrong = {
        name: double_backward(catalog.entries[name], catalog)
        for name, results in found.items()
        if (double_backward(catalog.entries[name], catalog).verdict == "no") != (False in results)
    }

    assert wrong == {}
    assert len(found) >= at_least


@pytest.mark.slow
def test_every_tenth_operator() -> None:
    """A shortened sweep."""
    check(operators()[::10], 20)


@pytest.mark.sweep
def test_every_operator() -> None:
    """All that make a node of a generated class: 290 on torch 2.13."""
    check(operators(), 280)
