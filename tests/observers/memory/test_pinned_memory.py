"""Page-locked memory of the host: seen where a tensor is pinned or copied to a device, and followed to its end."""

from typing import Any

import pytest
import torch

from gradinspect.observers.memory.pinned_memory import PinnedMemory
from gradinspect.torch_api.patching.originals import ops

TO: Any = torch.Tensor.to
ON_DEVICE = torch.empty(4, device="meta")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let all memory of the host be pinned, and count who asks for it: the question may make a device's context."""
    questions: list[int] = []

    def is_pinned(_tensor: torch.Tensor) -> bool:
        questions.append(1)
        return True

    monkeypatch.setattr(ops, "is_pinned", is_pinned)
    return questions


def test_what_is_copied_from_is_followed_to_its_end(asked: list[int]) -> None:
    """Each storage once, by its address; a label on it finds it there."""
    ended: list[tuple[str, int]] = []
    pinned = PinnedMemory(ended.append)
    tensor = torch.zeros(6)
    candidate = pinned.candidate(TO, (tensor[:2], "meta"))
    assert candidate is not None

    place = ("pinned", tensor.data_ptr())

    assert pinned.found(candidate, ON_DEVICE) == [(place, 24)]
    assert pinned.found(candidate, ON_DEVICE) == []
    assert pinned.place_of(("cpu", tensor.data_ptr())) == place
    assert pinned.place_of(("cpu", 1)) == ("cpu", 1)

    del candidate, tensor

    assert ended == [place]
    assert asked


def test_no_device_is_asked_that_the_program_does_not_use(asked: list[int]) -> None:
    """A copy on the CPU is no reason, nor is any other function."""
    pinned = PinnedMemory(lambda _place: None)
    tensor = torch.zeros(6)
    candidate = pinned.candidate(TO, (tensor, torch.float64))
    assert candidate is not None

    assert pinned.found(candidate, tensor.double()) == []
    assert pinned.candidate(torch.Tensor.add, (tensor, tensor)) is None
    assert pinned.candidate(torch.Tensor.copy_, (tensor,)) is None
    assert not asked
    assert not pinned.was_seen
