"""Step through our own backward of a graph, starting from ones, a random gradient, or row by row."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from typing import Literal, TypeAlias

import torch

from gradinspect.analyses.gradients.stepping import SteppingOutcome, combine
from gradinspect.errors import GradInspectError, text_of
from gradinspect.graph import Graph
from gradinspect.observers.stepping.lockstep import Lockstep, StepListener
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.values.tensors import TensorInfoTable
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.patching.originals import ops
from gradinspect.units import format_tensor

GradOutput: TypeAlias = Literal["ones", "random", "rows"]
MAX_ROWS = 64


class _LeftError(Exception):
    """The listener does not continue."""


def step_from_outputs(
    graph: Graph,
    outputs: Sequence[OutputTensor],
    listener: StepListener,
    grad_output: GradOutput | None,
    with_our_stdio: Callable[[], AbstractContextManager[None]],
) -> SteppingOutcome:
    """Call backward on these outputs, once or once per row, and step through it. Restores the leaves' `.grad`.

    Raises:
        GradInspectError: An output is not a scalar and no gradient was chosen, or there are too many rows.
    """
    tensors = [output.value for output in outputs if isinstance(output.value, torch.Tensor)]
    outcomes = []
    with _kept_gradients(outputs) as leaves:
        for start, gradients in _starts(outputs, tensors, grad_output):
            for leaf in leaves:
                leaf.grad = None
            continues = listener.begin(graph, start, with_our_stdio)
            outcome = _steps(graph, outputs, tensors, gradients, listener) if continues else None
            outcomes.append(outcome or SteppingOutcome(graph=graph, num_steps=0, is_complete=False))
            if not outcomes[-1].is_complete:
                break
    return reduce(combine, outcomes)


def _steps(
    graph: Graph,
    outputs: Sequence[OutputTensor],
    tensors: list[torch.Tensor],
    gradients: list[torch.Tensor],
    listener: StepListener,
) -> SteppingOutcome:
    def leave(_steps: Lockstep) -> None:
        raise _LeftError

    steps = Lockstep(graph, outputs, gradients, listener, leave)
    try:
        torch.autograd.backward(tensors, gradients, retain_graph=True)
    except _LeftError:
        return steps.outcome_so_far()
    except RuntimeError as error:
        reason = " ".join(graph.warnings) or text_of(error).split("\n", 1)[0]
        raise GradInspectError(f"Backward from {_described(outputs[0])} fails: {reason}") from None
    else:
        if steps.problem is not None:
            raise steps.problem
        return steps.finish()
    finally:
        steps.close()


def _starts(
    outputs: Sequence[OutputTensor], tensors: list[torch.Tensor], grad_output: GradOutput | None
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield the starting gradient of each backward, in words and as tensors."""
    if grad_output == "rows":
        yield from _rows(outputs, tensors)
        return
    wide = _first_wide(outputs, tensors)
    if wide is not None and grad_output is None:
        raise GradInspectError(
            f"The output {_described(wide)} is not a scalar, so backward needs a gradient to start with.",
            "Choose one: --grad-output ones, random, or rows for one backward per element.",
        )
    if grad_output == "random":
        generator = torch.Generator().manual_seed(0)
        yield (
            "random, seed 0",
            [
                ops.to(ops.randn(tensor.shape, generator=generator, dtype=tensor.dtype), tensor.device)
                for tensor in tensors
            ],
        )
    else:
        yield "ones", [ops.ones_like(tensor) for tensor in tensors]


def _first_wide(outputs: Sequence[OutputTensor], tensors: list[torch.Tensor]) -> OutputTensor | None:
    return next((output for output, tensor in zip(outputs, tensors, strict=True) if ops.numel(tensor) != 1), None)


def starting_gradients(
    outputs: Sequence[OutputTensor], given: Sequence[torch.Tensor | None] | None
) -> Sequence[torch.Tensor | None]:
    """Return the gradients given by the program, or ones for scalars.

    Raises:
        GradInspectError: The program gave none, and an output is not a scalar.
    """
    if given is not None:
        return given
    tensors = [output.value for output in outputs if isinstance(output.value, torch.Tensor)]
    wide = _first_wide(outputs, tensors)
    if wide is not None:
        raise GradInspectError(
            f"The output {_described(wide)} is not a scalar, so backward needs a gradient to start with.",
            "Reduce it to a scalar in the script, or call backward there with a gradient.",
        )
    return [ops.ones_like(tensor) for tensor in tensors]


def _rows(outputs: Sequence[OutputTensor], tensors: list[torch.Tensor]) -> Iterator[tuple[str, list[torch.Tensor]]]:
    if len(tensors) != 1:
        raise GradInspectError(
            f"'--grad-output rows' needs one output, but there are {len(tensors)}.", "Choose one with --root."
        )
    tensor = tensors[0]
    if ops.numel(tensor) > MAX_ROWS:
        raise GradInspectError(
            f"The output {_described(outputs[0])} has {ops.numel(tensor):,} elements, and each row is one backward.",
            f"Rows are limited to {MAX_ROWS}; use --grad-output ones or random.",
        )
    for row in range(ops.numel(tensor)):
        gradient = ops.zeros_like(tensor, memory_format=torch.contiguous_format)
        ops.setitem(ops.view(gradient, -1), row, 1)
        place = ", ".join(str(int(index)) for index in torch.unravel_index(ops.tensor(row), tensor.shape))
        yield f"1 at [{place}], 0 elsewhere: row {row + 1} of {ops.numel(tensor)}", [gradient]


def _described(output: OutputTensor) -> str:
    info = TensorInfoTable().of_tensor(output.value)
    return f"'{output.name}' ({format_tensor(info)})" if output.name else format_tensor(info)


@contextmanager
def _kept_gradients(outputs: Sequence[OutputTensor]) -> Iterator[list[torch.Tensor]]:
    """Restore the `.grad` of every leaf afterwards."""
    walk = Walk(output.edge[0] for output in outputs)
    leaves = [node.variable for node in walk.nodes if getattr(node, "variable", None) is not None]
    walk.close()
    before = [leaf.grad for leaf in leaves]
    try:
        yield leaves
    finally:
        for leaf, gradient in zip(leaves, before, strict=True):
            leaf.grad = gradient
