"""What memory held before it was written past autograd, kept to see whether a saved value has changed.

NOTE [Changed values]
A write past autograd spoils a backward only if what was saved differs then. It need not: the write may be undone, as by
a numerical derivative; it may write what is there already; an index may select other elements. So before such a write,
the elements that it may change are copied. Before backward the copies of all writes since the value was saved are laid
over the present content, the newest first. What was saved is then compared bit by bit with what is there.

The copies stay on their device, and only what a write has really reached is compared there. The newest are kept, and
never more than MAX_KEPT bytes; a write without one is judged by its elements alone.
"""

from collections import deque
from collections.abc import Iterable, Sequence

import torch

from gradinspect.checks.evidence.in_place.regions import Region, region_of
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import computes_by_itself, unobserved
from gradinspect.torch_api.patching.originals import ops

MAX_BYTES = 8 << 20  # that one write may change
MAX_KEPT = 32 << 20  # of all copies together
MAX_SPAN = 64 << 20  # of the memory from the first to the last element of a comparison, which is copied for it


class Content:
    """The bytes that a region held; none if they are no longer kept."""

    __slots__ = ("data",)

    def __init__(self, data: torch.Tensor | None) -> None:
        """Hold the bytes."""
        self.data = data


class KeptContents:
    """Keeps the newest contents, up to a number of bytes."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: deque[Content] = deque()
        self._num_bytes = 0

    def keep(self, data: torch.Tensor) -> Content:
        """Keep some bytes, and drop older ones."""
        content = Content(data)
        self._kept.append(content)
        self._num_bytes += data.nbytes
        while self._num_bytes > MAX_KEPT:
            oldest = self._kept.popleft()
            self._num_bytes -= 0 if oldest.data is None else oldest.data.nbytes
            oldest.data = None
        return content


def read_bytes(tensor: torch.Tensor, region: Region) -> torch.Tensor | None:
    """Copy the bytes of a region of a tensor's storage; None if they are too many or cannot be read."""
    if region.num_bytes > MAX_BYTES or not _is_readable(tensor):
        return None
    with unobserved():
        try:
            return ops.clone(_part(_memory(tensor), region.in_bytes), memory_format=torch.contiguous_format)
        except (RuntimeError, NotImplementedError):
            return None


def difference(tensor: torch.Tensor, writes: Iterable[tuple[Region, Content | None]]) -> torch.Tensor | None:
    """Compare a tensor with what it was before some writes. NOTE [Changed values].

    Args:
        tensor: It.
        writes: The regions that were written, the oldest first, with what they held before.

    Returns:
        Whether a bit differs, on the tensor's device; None if that cannot be known.
    """
    before = [(region.in_bytes, None if content is None else content.data) for region, content in writes]
    if not _is_readable(tensor) or any(data is None for _, data in before):
        return None
    with unobserved():
        try:
            return _compare(tensor, [(region, data) for region, data in before if data is not None])
        except (RuntimeError, NotImplementedError):
            return None


def _compare(tensor: torch.Tensor, before: Sequence[tuple[Region, torch.Tensor]]) -> torch.Tensor | None:
    own = region_of(tensor).in_bytes
    regions = [own, *(region for region, _ in before)]
    start, end = min(region.offset for region in regions), max(region.end for region in regions)
    if end - start > MAX_SPAN or any(region.shape != data.shape for region, data in before):
        return None
    now = _memory(tensor)
    then = ops.clone(ops.narrow(now, 0, start, end - start))
    for region, data in reversed(before):
        ops.copy_(_part(then, region, start), data)
    return ops.any(ops.ne(_part(then, own, start), _part(now, own)))


def _is_readable(tensor: torch.Tensor) -> bool:
    return not computes_by_itself(tensor) and (tensor.is_cpu or not is_capturing())


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """View the whole storage of a tensor as bytes."""
    return ops.set_(ops.empty(0, dtype=torch.uint8, device=tensor.device), ops.untyped_storage(tensor))


def _part(memory: torch.Tensor, region: Region, start: int = 0) -> torch.Tensor:
    return ops.as_strided(memory, region.shape, region.strides, region.offset - start)
