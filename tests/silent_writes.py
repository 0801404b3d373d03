"""Small programs that write past autograd: some to what backward needs, some beside it.

Each returns its loss and the leaves whose gradients the write may spoil. `WRONG` programs have other gradients than a
run in which every saved tensor was copied; those of `RIGHT` programs are equal to it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[Tensor, list[Tensor]]
Program = Callable[[], Made]


def leaf(*shape: int) -> Tensor:
    """Make a leaf whose elements differ."""
    count = int(np.prod(shape))
    return (torch.arange(1.0, count + 1) / count).reshape(shape).requires_grad_()


def whole_weight() -> Made:
    """Scale a weight that was saved."""
    w = leaf(4)
    loss = (w * w).sum()
    w.data.mul_(0.9)
    return loss, [w]


def one_element() -> Made:
    """Assign to one element of a weight that was saved."""
    w = leaf(4)
    loss = (w * w).sum()
    w.data[1] = 7
    return loss, [w]


def masked_elements() -> Made:
    """Assign to those that a mask selects."""
    w = leaf(4)
    h = w * 2
    loss = h.square().sum()
    h.data[h > 1] = 0.0
    return loss, [w]


def columns_that_are_read() -> Made:
    """Write to a column between others, of which two were saved."""
    w = leaf(3)
    k = torch.zeros(3, 4)
    k.data[:, 0] = 1.0
    loss = (k[:, :2] * w[:, None]).sum()
    k.data[..., 1] = 5.0
    return loss, [w]


def full_ring() -> Made:
    """Reuse the first place of a ring of keys before backward has read it."""
    w = leaf(2)
    ring, losses = torch.zeros(3, 2), []
    for position in range(4):
        ring.data[position % 3] = float(position + 1)
        losses.append((ring[: position + 1] * w).sum())
    return torch.stack(losses).sum(), [w]


def other_index() -> Made:
    """Copy to positions that an index selects, one of which was saved."""
    w = leaf(2)
    cache = torch.ones(4, 2)
    loss = (cache[:2] * w).sum()
    cache.data.index_copy_(0, torch.tensor([1, 3]), torch.full((2, 2), 9.0))
    return loss, [w]


def scattered() -> Made:
    """Scatter into what was saved."""
    w = leaf(4)
    cache = torch.ones(4)
    loss = (cache * w).sum()
    cache.data.scatter_(0, torch.tensor([2]), 3.0)
    return loss, [w]


def overlapping_windows() -> Made:
    """Write to a window that overlaps the one that was saved."""
    w = leaf(3)
    signal = torch.ones(8)
    windows = signal.unfold(0, 3, 2)
    loss = (windows[1] * w).sum()
    windows.data[0] = 4.0
    return loss, [w]


def many_at_once() -> Made:
    """Write by an operator on a list."""
    w, v = leaf(3), leaf(2)
    loss = (w * w).sum() + (v * v).sum()
    torch._foreach_mul_([w.data, v.data], 0.5)
    return loss, [w, v]


def given_output() -> Made:
    """Write by `out=`."""
    w = leaf(3)
    loss = (w * w).sum()
    torch.mul(w.detach(), 2, out=w.data)
    return loss, [w]


def as_bits() -> Made:
    """Write to the bits of what was saved."""
    w = leaf(3)
    loss = (w * w).sum()
    w.data.view(torch.int16)[0::2] += 1
    return loss, [w]


def to_nan() -> Made:
    """Turn a number into NaN."""
    w = leaf(3)
    loss = (w * w).sum()
    w.data[2] = float("nan")
    return loss, [w]


def other_memory() -> Made:
    """Give a weight that was saved other memory."""
    w = leaf(3)
    loss = (w * w).sum()
    w.data = w.data * 2
    return loss, [w]


def set_memory() -> Made:
    """Do so by `set_`, which raises the version."""
    w = leaf(3)
    loss = (w * w).sum()
    with torch.no_grad():
        w.set_(torch.full((3,), 4.0))
    return loss, [w]


def by_numpy() -> Made:
    """Write to the array that shares the memory."""
    w = leaf(3)
    x = torch.ones(3)
    array = x.numpy()
    loss = (x * w).sum()
    array[1] = 5.0
    return loss, [w]


def by_array() -> Made:
    """Write to the array whose memory the tensor has."""
    w = leaf(3)
    array = np.ones(3, dtype=np.float32)
    loss = (torch.from_numpy(array) * w).sum()
    array *= 3
    return loss, [w]


def fused_step() -> Made:
    """Step between forward and backward by one kernel for all weights."""
    w = leaf(3)
    optimizer = torch.optim.Adam([w], lr=0.1, fused=True)
    loss = (w * w).sum()
    w.grad = torch.ones(3)
    optimizer.step()
    w.grad = None
    return loss, [w]


def listed_step() -> Made:
    """Step by operators on lists, which raise the version."""
    w = leaf(3)
    optimizer = torch.optim.SGD([w], lr=0.1, foreach=True)
    loss = (w * w).sum()
    w.grad = torch.ones(3)
    optimizer.step()
    w.grad = None
    return loss, [w]


def statistics() -> Made:
    """Normalize a batch in training, whose statistics an evaluation has saved."""
    w = leaf(2, 3)
    norm = nn.BatchNorm1d(3).eval()
    loss = norm(w).square().sum()
    norm.train()(torch.randn(4, 3) + 5)
    return loss, [w]


def hidden_version() -> Made:
    """Write to a detached tensor, which raises the version."""
    w = leaf(3)
    loss = (w * w).sum()
    w.detach().add_(1)
    return loss, [w]


def preserved_version() -> Made:
    """Write under the context that takes the version back."""
    w = leaf(3)
    loss = (w * w).sum()
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(w):
        w.mul_(3)
    return loss, [w]


def nearly_restored() -> Made:
    """Restore all but one element."""
    w = leaf(4)
    loss = (w * w).sum()
    before = w.data.clone()
    w.data.zero_()
    w.data[:3] = before[:3]
    return loss, [w]


WRONG: list[Program] = [
    whole_weight, one_element, masked_elements, columns_that_are_read, full_ring, other_index, scattered,
    overlapping_windows, many_at_once, given_output, as_bits, to_nan, other_memory, set_memory, by_numpy, by_array,
    fused_step, listed_step, statistics, hidden_version, preserved_version, nearly_restored,
]  # fmt: skip


class Assign(torch.autograd.Function):
    """Assign past autograd, as solvers of differential equations do."""

    @staticmethod
    def forward(ctx: Any, scratch: Tensor, value: Tensor, index: Any) -> Tensor:
        """Write to the index."""
        ctx.index = index
        scratch.data[index] = value
        return scratch

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Hand on the gradient of what was written."""
        return grad, grad[ctx.index], None


def stages_of_a_solver() -> Made:
    """Fill the last dimension of an uninitialized buffer stage by stage."""
    w, dt = leaf(3), leaf(1)
    k: Any = Assign.apply(torch.empty(3, 1, 5), w[:, None].sin(), (..., 0))
    y = w[:, None]
    for stage in range(4):
        y = w[:, None] + (k[..., : stage + 1] * (torch.linspace(0.1, 0.5, stage + 1) * dt)).sum(-1)
        k = Assign.apply(k, (y * w[:, None]).sin(), (..., stage + 1))
    return y.square().sum() + (k * dt).sum(), [w, dt]


class Memory(torch.autograd.Function):
    """A stack of keys that hands gradients on position by position."""

    @staticmethod
    def forward(ctx: Any, memory: Tensor, gradients: Tensor, last: Tensor, count: int) -> Tensor:
        """Return a part of the memory, of which `last` is the newest row."""
        ctx.gradients, ctx.count = gradients, count
        return memory[:count].detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, None]:
        """Add to the gradients of all rows, and return that of the newest."""
        ctx.gradients.data[: ctx.count] += grad
        return None, None, ctx.gradients[ctx.count - 1].clone(), None


def feedback_memory() -> Made:
    """Append to a memory of keys that every position attends to."""
    w = leaf(2, 2)
    memory, gradients = torch.zeros(5, 2), torch.zeros(5, 2)
    x, losses = torch.ones(2), []
    for position in range(5):
        x = torch.tanh(w @ x)
        memory.data[position] = x.detach()
        keys: Any = Memory.apply(memory, gradients, x, position + 1)
        x = (keys @ w).softmax(0).mean(0) + x
        losses.append((keys * x).square().sum())
    return torch.stack(losses).sum(), [w]


def cache_by_position() -> Made:
    """Append to a cache with the batch first, so that the positions are interleaved."""
    w = leaf(2)
    cache, losses = torch.empty(3, 2, 6, 2), []
    for position in range(6):
        cache.data[:, :, position] = w.detach() * position
        losses.append((cache[:, :, : position + 1] * w).sum())
    return torch.stack(losses).sum(), [w]


def cache_by_index() -> Made:
    """Append to a cache at a position that is a tensor."""
    w = leaf(2)
    cache, losses = torch.zeros(6, 2), []
    for position in range(6):
        cache.data.index_copy_(0, torch.tensor([position]), torch.full((1, 2), float(position)))
        losses.append((cache[: position + 1] * w).sum())
    return torch.stack(losses).sum(), [w]


def cache_by_scalar() -> Made:
    """Assign at a position that is a tensor without dimensions."""
    w = leaf(2)
    cache, losses = torch.zeros(6, 2), []
    for position in torch.arange(6):
        cache.data[position] = float(position)
        losses.append((cache[: int(position) + 1] * w).sum())
    return torch.stack(losses).sum(), [w]


def other_half() -> Made:
    """Save one half of a buffer, and write to the other."""
    w = leaf(2)
    buffer = torch.ones(4)
    loss = (buffer[:2] * w).sum()
    buffer.data[2:] = 5
    return loss, [w]


def other_columns() -> Made:
    """Save even columns, and write to odd ones."""
    w = leaf(2)
    buffer = torch.ones(3, 4)
    loss = (buffer[:, ::2] * w).sum()
    buffer.data[:, 1::2] = 5
    return loss, [w]


def other_rows_of_a_list() -> Made:
    """Write to rows that a list selects."""
    w = leaf(2)
    buffer = torch.ones(4, 2)
    loss = (buffer[:2] * w).sum()
    buffer.data[[2, 3]] = 5
    return loss, [w]


def other_rows_of_a_mask() -> Made:
    """Write to rows that a mask selects."""
    w = leaf(2)
    buffer = torch.ones(4, 2)
    loss = (buffer[:2] * w).sum()
    buffer.data[torch.tensor([False, False, True, True])] = 5
    return loss, [w]


def other_window() -> Made:
    """Write to a window beside the one that was saved."""
    w = leaf(3)
    windows = torch.ones(9).unfold(0, 3, 2)
    loss = (windows[0] * w).sum()
    windows.data[2] = 4.0
    return loss, [w]


def other_bits() -> Made:
    """Write to the bits of other elements."""
    w = leaf(2)
    buffer = torch.ones(4)
    loss = (buffer[:2] * w).sum()
    buffer.data.view(torch.uint8)[8:] = 1
    return loss, [w]


def same_values() -> Made:
    """Write what is there already, NaN and all."""
    w = leaf(3)
    x = torch.tensor([1.0, float("nan"), -0.0])
    loss = (x * w).nansum()
    x.data.copy_(x.clone())
    x.data[1] = float("nan")
    return loss, [w]


def clamped_within() -> Made:
    """Clamp a weight that is within the limits."""
    w = leaf(3)
    loss = (w * w).sum()
    w.data.clamp_(-10, 10)
    return loss, [w]


def restored() -> Made:
    """Move a weight and move it back, as numerical derivatives do."""
    w = leaf(3)
    loss = (w * w).sum()
    before = w.data[1].clone()
    w.data[1] += 0.5
    functional.relu(w.detach())
    w.data[1] = before
    return loss, [w]


def same_memory() -> Made:
    """Give a weight the same memory, and other memory with the same values."""
    w = leaf(3)
    loss = (w * w).sum()
    w.data = w.data
    w.data = w.data.clone()
    return loss, [w]


def other_elements_by_numpy() -> Made:
    """Write to other elements of an array that shares the memory."""
    w = leaf(2)
    x = torch.ones(4)
    array = x.numpy()
    loss = (x[:2] * w).sum()
    array[2:] = 5.0
    return loss, [w]


def statistics_that_stay() -> Made:
    """Normalize a batch in training with a momentum of zero."""
    w = leaf(2, 3)
    norm = nn.BatchNorm1d(3, momentum=0.0).eval()
    loss = norm(w).square().sum()
    norm.train()(torch.randn(4, 3) + 5)
    return loss, [w]


def step_of_rate_zero() -> Made:
    """Step by one kernel at a rate of zero, as the first step of a warmup is."""
    w = leaf(3)
    optimizer = torch.optim.SGD([w], lr=0.0, fused=True)
    loss = (w * w).sum()
    w.grad = torch.ones(3)
    optimizer.step()
    w.grad = None
    return loss, [w]


def listed_beside() -> Made:
    """Write to other elements by an operator on a list, and by `out=`."""
    w = leaf(2)
    buffer = torch.ones(6)
    loss = (buffer[:2] * w).sum()
    torch._foreach_add_([buffer.data[2:4], buffer.data[4:]], 1.0)
    torch.mul(buffer[4:], 2, out=buffer.data[4:])
    return loss, [w]


RIGHT: list[Program] = [
    stages_of_a_solver, feedback_memory, cache_by_position, cache_by_index, cache_by_scalar, other_half, other_columns,
    other_rows_of_a_list, other_rows_of_a_mask, other_window, other_bits, same_values, clamped_within, restored,
    same_memory, other_elements_by_numpy, statistics_that_stay, step_of_rate_zero, listed_beside,
]  # fmt: skip
