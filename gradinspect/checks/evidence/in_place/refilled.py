"""Weights that a mask has set to zero once, and that the optimizer fills again.

NOTE [Zeros of a mask]
The gradient knows nothing of a mask that was multiplied into a weight: the next step moves what it has set to zero. So
where the last write to a matrix was one by a mask, its zeros are counted before the next step and before those after
it. If nearly all of them are gone in LEAST_STEPS, and no mask was written again, the mask has no effect. Whole rows and
columns are initial values, as of padding, and so are those that are all equal, as of an identity.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch.optim import Optimizer

from gradinspect.checks.evidence.training.gradient_use import held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.training import RefilledZeros
from gradinspect.checks.facts.value_flow import OUTSIDE, Call
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

LEAST_STEPS = 2  # that found the zeros gone
MOST_ELEMENTS = 1 << 22  # of a matrix whose zeros are counted
LEAST_SHARE, MOST_SHARE = 0.05, 0.99  # of zeros
_LEFT = 0.1  # of the zeros, or fewer
_MASKS = frozenset(("mul", "imul", "multiply", "masked_fill", "setitem", "where"))
_PASSES = frozenset(("copy", "data"))  # into the parameter what another call has made
_ALIASES = frozenset(("data", "detach"))


@dataclass
class _Masked:
    """A parameter that a mask was written to."""

    tensor: HiddenRef
    call: int  # that wrote it
    num_zeros: int
    num_elements: int
    optimizer: SeenOptimizer
    num_steps: int = 0  # that found its zeros gone
    is_kept: bool = False  # a step left its zeros, or a mask was written again


@dataclass
class RefilledLog:
    """Counts zeros before steps. The log of the training loop calls it with what it sees. NOTE [Zeros of a mask]."""

    flow: Dataflow
    errors: OwnErrors
    _known: dict[int, _Masked] = field(default_factory=dict)  # by the parameter's id
    _seen: dict[int, int] = field(default_factory=dict)  # id of a parameter -> the last write that was looked at

    def before_step(self, optimizer: Optimizer, one: SeenOptimizer) -> None:
        """Look at what a step is about to change."""
        if is_capturing() or self.flow.is_full:  # NOTE [Captured kernels]
            return
        for tensor in held_by(optimizer):
            if is_one_of(tensor, (torch.Tensor, torch.nn.Parameter)) and tensor.requires_grad:
                self._look(tensor, one)

    def facts(
        self, names_of: Callable[[list[torch.Tensor]], tuple[str, ...]], frame_of: Callable[[int | None], Frame | None]
    ) -> Iterator[RefilledZeros]:
        """Yield what was filled, by the lines that have set it to zero."""
        by_line: dict[int | None, list[_Masked]] = {}
        for one in self._known.values():
            if not one.is_kept and one.num_steps >= LEAST_STEPS:
                by_line.setdefault(self.flow.calls[one.call].frame, []).append(one)
        for frame, some in by_line.items():
            tensors = [tensor for one in some if (tensor := one.tensor()) is not None]
            yield RefilledZeros(
                names=tuple(dict.fromkeys(names_of(tensors))) or ("a parameter",),
                num_zeros=sum(one.num_zeros for one in some), num_elements=sum(one.num_elements for one in some),
                num_steps=min(one.num_steps for one in some), optimizer=some[0].optimizer.name,
                set=frame_of(frame), step=frame_of(some[0].optimizer.step),
            )  # fmt: skip

    def _look(self, tensor: torch.Tensor, optimizer: SeenOptimizer) -> None:
        known = self._known.get(id(tensor))
        if known is not None and known.tensor() is not tensor:
            del self._known[id(tensor)]
            known = None
        call = self._mask_of(tensor)
        if call is None or (known is None and self._seen.get(id(tensor)) == call):
            return
        self._seen[id(tensor)] = call
        if known is not None:
            self._compare(known, tensor, call)
        elif ops.numel(tensor) > MOST_ELEMENTS:
            self.errors.pass_over("weight that a mask was written to", f"larger than {MOST_ELEMENTS:,} elements")
        else:
            zeros = _scattered_zeros(tensor)
            if zeros:
                self._known[id(tensor)] = _Masked(HiddenRef(tensor), call, zeros, ops.numel(tensor), optimizer)

    def _mask_of(self, tensor: torch.Tensor) -> int | None:
        """Return the last call that wrote to a matrix, if that may have been a mask."""
        call = self.flow.last_write(tensor) if len(tensor.shape) > 1 else OUTSIDE
        if call == OUTSIDE:
            return None
        calls = self.flow.calls
        written = calls[call]
        if written.is_write and written.name.strip("_") in _PASSES:
            sources = [read.call for read in written.reads if read.call != OUTSIDE]
            written = calls[max(sources)] if sources else written
        return call if written.name.strip("_") in _MASKS and self._reads_mask(written) else None

    def _reads_mask(self, call: Call) -> bool:
        """Return whether a call reads more than what it writes to."""
        calls = self.flow.calls
        return any(read.call == OUTSIDE or calls[read.call].name not in _ALIASES for read in call.reads)

    def _compare(self, known: _Masked, tensor: torch.Tensor, call: int) -> None:
        if known.is_kept or (known.num_steps >= LEAST_STEPS and known.call == call):
            return
        if known.call != call or _num_zeros(tensor) > _LEFT * known.num_zeros:
            known.is_kept = True
        else:
            known.num_steps += 1


def _num_zeros(tensor: torch.Tensor) -> int:
    with unobserved():
        return int(ops.numel(tensor) - ops.item(ops.count_nonzero(ops.detach(tensor))))


def _scattered_zeros(tensor: torch.Tensor) -> int:
    """Return how many elements of a matrix are zero; 0 if these are few, nearly all, or no pattern of a mask."""
    num_zeros, num_elements = _num_zeros(tensor), ops.numel(tensor)
    if not LEAST_SHARE * num_elements <= num_zeros <= MOST_SHARE * num_elements:
        return 0
    with unobserved():
        values = ops.abs(ops.flatten(ops.detach(tensor), 1))
        is_set = ops.ne(values, 0)
        rows, columns = (int(ops.item(ops.sum(ops.any(is_set, axis)))) for axis in (1, 0))
        least = ops.item(ops.min(ops.masked_select(values, is_set)))
        is_constant = bool(ops.item(ops.max(values)) == least)
    return 0 if is_constant or rows * columns == num_elements - num_zeros else num_zeros
