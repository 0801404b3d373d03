"""Checksums of memory."""

import pytest
import torch

from gradinspect.checks.evidence.in_place import contents
from gradinspect.checks.evidence.in_place.contents import checksum


def test_a_value_that_was_restored_has_the_checksum_that_it_had() -> None:
    """Of the whole storage, of which a tensor may be a part."""
    whole = torch.arange(6.0)
    before = checksum(whole)
    assert checksum(whole[2:4]) == before
    whole[5] = 1.0
    assert checksum(whole[2:4]) not in (before, None)
    whole[5] = 5.0
    assert checksum(whole) == before


@pytest.mark.parametrize(("size", "is_known"), [(3, True), (4, True), (5, False)])
def test_a_large_storage_has_none(size: int, monkeypatch: pytest.MonkeyPatch, *, is_known: bool) -> None:
    """To read it would take too long."""
    monkeypatch.setattr(contents, "MAX_BYTES", 16)

    assert (checksum(torch.zeros(size)) is not None) == is_known


def test_what_cannot_be_read_has_none() -> None:
    """A tensor without memory."""
    assert checksum(torch.empty(3, device="meta")) is None


@pytest.mark.parametrize(("size", "is_known"), [(8 << 20, True), ((8 << 20) + 1, False)])
def test_a_storage_of_eight_mebibytes_is_not_large(size: int, *, is_known: bool) -> None:
    """One byte more is."""
    assert (checksum(torch.empty(size, dtype=torch.uint8)) is not None) == is_known
