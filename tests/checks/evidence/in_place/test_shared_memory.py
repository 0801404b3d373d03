"""Memory that NumPy shares with tensors, and writes to without torch."""

import numpy as np
import pytest
import torch

from gradinspect.checks.evidence.in_place import shared_memory
from gradinspect.checks.evidence.in_place.shared_memory import SharedMemory, is_from_numpy
from gradinspect.recording.values.storages import storage_key


def test_memory_that_is_given_to_numpy() -> None:
    """Its line is that of the first call; what NumPy writes shows in the same view, transposed or not."""
    x = torch.arange(6.0).view(2, 3)
    memory = SharedMemory()
    memory.share(x, 7, 3)
    memory.share(x, 8, 4)
    key = storage_key(x) or 0
    before = memory.is_changed(x, 3), memory.is_changed(x.t(), 3)
    x.numpy()[0, 0] = 5

    assert (memory.knows(key), memory.sharing_frame(key)) == (True, 7)
    assert before == (False, False)
    assert (memory.is_changed(x, 3), memory.is_changed(x.t(), 3), memory.is_changed(x, 4)) == (True, True, True)
    assert memory.is_changed(x[None, :, None], 3)  # a dimension of one element is nothing
    assert not memory.is_changed(x, 5)  # a node that was made later
    assert not memory.is_changed(x[1:], 3)  # of which nothing is known
    assert not memory.is_changed(torch.ones(2, 3), 3)
    assert (memory.knows(0), memory.sharing_frame(0)) == (False, None)


def test_a_part_of_what_numpy_has_made() -> None:
    """Its own elements count, and no others of the same memory."""
    array = np.zeros(6, dtype=np.float32)
    part = torch.from_numpy(array)[3:]
    memory = SharedMemory()
    memory.read([part], 5)
    array[0] = 1
    before = memory.is_changed(part, 4)
    array[4] = 1

    assert (before, memory.is_changed(part, 4)) == (False, True)


def test_memory_that_was_released_is_not_read() -> None:
    """Reading it would end the process; nothing is said of it."""
    x = torch.ones(4)
    memory = SharedMemory()
    memory.share(x, None, 3)
    x.untyped_storage().resize_(0)

    assert not memory.is_changed(x, 2)


def test_data_that_numpy_has_made() -> None:
    """What an operator read is compared with what was there then."""
    array = np.ones(3, dtype=np.float32)
    data, own = torch.from_numpy(array), torch.ones(3)
    memory = SharedMemory()
    memory.read([data, own], 5)
    first = memory.is_changed(data, 4)
    array[0] = 2
    memory.read([data], 9)

    assert (first, memory.is_changed(data, 4), memory.is_changed(data, 5), memory.is_changed(data, 8)) == (
        False, True, False, False,
    )  # fmt: skip
    assert [memory.knows(storage_key(tensor) or 0) for tensor in (data, own)] == [True, False]


def test_what_learns_is_looked_at_once_memory_is_shared() -> None:
    """Not before: it is no data."""
    weight, other = (torch.ones(3, requires_grad=True) for _ in range(2))
    memory = SharedMemory()
    memory.read([weight], 1)
    assert not memory.knows(storage_key(weight) or 0)
    memory.share(weight.detach(), None, 1)
    memory.read([weight, other], 5)
    weight.detach().numpy()[0] = 3

    assert memory.is_changed(weight, 4)
    assert not memory.knows(storage_key(other) or 0)


@pytest.mark.parametrize(
    ("tensor", "is_numpys"),
    [
        (torch.from_numpy(np.ones(3)), True),
        (torch.from_numpy(np.ones(3))[1:], True),
        (torch.ones(3), False),
        (torch.nn.Parameter(torch.from_numpy(np.ones(3)), requires_grad=False), False),
        (torch.from_numpy(np.ones(3)).requires_grad_(), False),
        (torch.eye(3).to_sparse(), False),
    ],
)
def test_only_data_is_numpys(tensor: torch.Tensor, *, is_numpys: bool) -> None:
    """Whatever else has its memory is the program's own business."""
    assert is_from_numpy(tensor) == is_numpys


@pytest.mark.parametrize(("size", "is_known"), [(0, False), (1, True), (16, True), (17, False)])
def test_only_memory_up_to_a_size_is_looked_at(monkeypatch: pytest.MonkeyPatch, size: int, *, is_known: bool) -> None:
    """A checksum of more would slow down the program; a part that is small enough is looked at."""
    monkeypatch.setattr(shared_memory, "MAX_BYTES", 64)
    x = torch.zeros(20)
    memory = SharedMemory()
    memory.share(x[:size], None, 0)
    x.add_(1)

    assert memory.knows(storage_key(x) or 0) == is_known
    assert memory.is_changed(x[:size], 0) == is_known


def test_how_much_is_looked_at() -> None:
    """A tensor up to a mebibyte; of complex or sparse ones nothing is known."""
    for size, is_known in ((1 << 20, True), ((1 << 20) + 1, False)):
        x, memory = torch.zeros(size, dtype=torch.uint8), SharedMemory()
        memory.share(x, None, 0)
        assert memory.knows(storage_key(x) or 0) == is_known
    for other in (torch.zeros(2, dtype=torch.complex64), torch.eye(2).to_sparse(), torch.zeros(2, device="meta")):
        memory = SharedMemory()
        memory.share(other, None, 0)
        assert not memory.is_changed(other, 0)
        assert not memory.knows(storage_key(other) or 0)


def test_only_so_many_views_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones."""
    monkeypatch.setattr(shared_memory, "MAX_VIEWS", 2)
    x, memory = torch.zeros(4), SharedMemory()
    for part in x:
        memory.share(part, None, 0)
    x.add_(1)

    assert [memory.is_changed(part, 0) for part in x] == [True, True, False, False]
