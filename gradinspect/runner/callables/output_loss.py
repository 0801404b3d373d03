"""A loss for a callable that calls no backward: the sum of its output, or what the user says."""

import linecache
from typing import Any

import torch

from gradinspect.errors import GradInspectError
from gradinspect.recording.outputs import outputs_in, requires_grad
from gradinspect.recording.values.tensors import TensorInfoTable
from gradinspect.torch_api.patching.originals import ops
from gradinspect.units import format_tensor

FILE = "<loss>"  # the file name of these lines in reports
SUM = "sum_of(out)"


def run_backward(value: object, loss: str | None) -> None:
    """Compute a loss and call its backward, as two lines of the program would.

    Args:
        value: What the callable returned: `out` in the expression.
        loss: An expression, such as `out.square().mean()`; None: the sum of all outputs.

    Raises:
        GradInspectError: The expression is not Python, or its value is not a scalar with a graph.
        Exception: What the expression raises.
    """
    lines = [f"loss = {loss or SUM}", "loss.backward()"]
    linecache.cache[FILE] = (0, None, [f"{line}\n" for line in lines], FILE)  # mtime None: never checked against a disk
    try:
        codes = [compile("\n" * number + line, FILE, "exec") for number, line in enumerate(lines)]
    except SyntaxError as error:
        raise GradInspectError(f"'--loss {loss}' is not a Python expression: {error.msg}.", _HOW) from None
    namespace: dict[str, Any] = {"torch": torch, "out": value, "sum_of": _sum_of}
    exec(codes[0], namespace)  # noqa: S102  # the user's expression
    _check(namespace["loss"], loss or SUM)
    exec(codes[1], namespace)  # noqa: S102  # one line of ours, with a file name of its own


_HOW = "Write it with the output as out: --loss 'out.square().mean()'."


def _sum_of(value: object) -> torch.Tensor:
    """Add up every output that has a graph; of a complex one, its real part."""
    tensors = [output.value for output in outputs_in(value) if isinstance(output.value, torch.Tensor)]
    parts = [ops.sum(tensor.real if ops.is_complex(tensor) else tensor) for tensor in tensors]
    total = parts[0]
    for part in parts[1:]:
        total = ops.add(total, ops.to(part, total.device))
    return total


def _check(loss: object, text: str) -> None:
    if not isinstance(loss, torch.Tensor):
        raise GradInspectError(f"'--loss {text}' is not a tensor, but {type(loss).__name__}.", _HOW)
    if not requires_grad(loss):
        raise GradInspectError(
            f"'--loss {text}' has no graph.", "Compute it from the output, out, by differentiable operators."
        )
    if ops.numel(loss) != 1:
        info = TensorInfoTable().of_tensor(loss)
        raise GradInspectError(f"'--loss {text}' is not a scalar ({format_tensor(info)}).", "Reduce it, as by .sum().")
