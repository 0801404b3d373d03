"""Every operator on real and on fake tensors: the same nodes, the same bytes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from operator_sweep import operators
from torch.utils._pytree import tree_map

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.fake.mode import FAKE_TYPES, FakeRun
from gradinspect.graph import Graph
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated operators are swept as well
SAMPLES = 4  # of each operator
# In half precision its shape function has 40 bytes for an output that the CPU kernel leaves empty (torch 2.13).
KNOWN = {"nn.functional.embedding_bag"}


def recorded(op: Callable[..., Any], value: Any, args: Any, kwargs: Any) -> Graph | None:
    """Record what comes out of an operator."""
    outputs = outputs_in(op(value, *args, **kwargs))
    return record_graph(outputs, Moment(source="sweep", plain_types=FAKE_TYPES)) if outputs else None


def figures(graph: Graph) -> tuple[list[str], list[tuple[int, str]]]:
    """Name the nodes and the storages; whether a reshape is a view or an alias of one depends on addresses."""
    names = [node.name.replace("ReshapeAlias", "View") for node in graph.nodes]
    return names, sorted((held.num_bytes, held.held_as) for held in measure_memory(graph).storages)


def fake_like(value: Any) -> Any:
    """Make a tensor with the looks of another one, inside a fake run."""
    if not isinstance(value, torch.Tensor):
        return value
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return made.requires_grad_(value.requires_grad)


def compare(op: Any, dtype: torch.dtype) -> tuple[int, list[str]]:
    """Run an operator's samples both ways; return how many agree, and what differs."""
    agree, differ = 0, []
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=True)):
        if number == SAMPLES:
            break
        try:
            real = recorded(op, sample.input, sample.args, sample.kwargs)
            with FakeRun(None):
                fake = recorded(op, *tree_map(fake_like, (sample.input, sample.args, sample.kwargs)))
        except Exception:  # noqa: S112  # no derivative, or an operator that reads values
            continue
        if real is None or fake is None:
            continue
        if figures(real) == figures(fake):
            agree += 1
        else:
            differ.append(f"{op.name}: {figures(real)} is faked as {figures(fake)}")
    return agree, differ


def sweep(ops: list[Any], dtype: torch.dtype, at_least: int) -> None:
    """Compare the samples of many operators."""
    agree, differ = 0, []
    for op in ops:
        if op.supports_autograd and dtype in op.supported_dtypes("cpu") and op.name not in KNOWN:
            number, found = compare(op, dtype)
            agree += number
            differ += found

    assert differ == []
    assert agree >= at_least


@pytest.mark.slow
def test_every_sixteenth_operator() -> None:
    """A shortened sweep."""
    sweep(operators()[::16], torch.float32, 75)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_every_operator(dtype: torch.dtype) -> None:
    """All that need no values, in single, half and complex precision."""
    sweep(operators(), dtype, 1000)
