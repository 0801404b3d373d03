"""A fingerprint says whether two tensors differ, and by how much."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.diff.values import distance
from gradinspect.graph import Fingerprint
from gradinspect.observers.gradients import fingerprints
from gradinspect.observers.gradients.fingerprints import fetch, measure


def taken(tensor: torch.Tensor) -> Fingerprint:
    """Take the fingerprint of one tensor."""
    pending = measure(tensor)
    assert pending is not None
    return fetch([pending])[0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_the_figures_are_those_of_the_tensor(dtype: torch.dtype) -> None:
    """As torch itself computes them in double precision."""
    tensor = (torch.randn(37, 5, generator=torch.Generator().manual_seed(1)) * 9).to(dtype)
    numbers, found = tensor.double(), taken(tensor)

    assert found.norm == pytest.approx(float(numbers.norm()))
    assert found.mean == pytest.approx(float(numbers.mean()))
    assert (found.low, found.high) == (float(numbers.min()), float(numbers.max()))
    assert found.num_nonfinite == 0


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=30), st.integers(0, 29), st.integers(0, 31))
def test_one_bit_changes_the_digest(numbers: list[float], place: int, bit: int) -> None:
    """And the sketch: any bit of any element."""
    tensor = torch.tensor(numbers, dtype=torch.float32)
    changed = tensor.clone()
    changed.view(torch.int32)[place % len(numbers)] ^= (1 << bit) if bit < 31 else -(1 << 31)

    assert taken(tensor.clone()).digest == taken(tensor).digest
    assert taken(changed).digest != taken(tensor).digest
    assert taken(changed).sketch != taken(tensor).sketch


def test_another_order_has_the_same_sketch() -> None:
    """But another digest."""
    tensor = torch.arange(20.0)
    turned, straight = taken(tensor.flip(0)), taken(tensor)

    assert (turned.sketch, turned.norm) == (straight.sketch, straight.norm)
    assert turned.digest != straight.digest
    assert distance(turned, straight).is_reordered


def test_the_layout_in_memory_does_not_count() -> None:
    """Elements are read in their logical order."""
    tensor = torch.arange(12.0).reshape(3, 4)

    assert taken(tensor.t()) == taken(tensor.t().contiguous())
    assert taken(tensor.t()).digest != taken(tensor).digest


@pytest.mark.parametrize("step", [1, 7, 20])
def test_large_tensors_are_read_in_parts(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result."""
    tensor = torch.randn(20, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    whole = taken(tensor)
    monkeypatch.setattr(fingerprints, "STEP", step)
    parts = taken(tensor)

    assert (parts.digest, parts.sketch) == (whole.digest, whole.sketch)
    assert parts.projections == pytest.approx(whole.projections)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_distance_is_about_right(size: float, seed: int) -> None:
    """Within a factor of two of the norm of the difference, from eight projections."""
    generator = torch.Generator().manual_seed(seed)
    one = torch.randn(1000, generator=generator)
    other = one + size * torch.randn(1000, generator=generator)
    true = float((one.double() - other.double()).norm())
    found = distance(taken(one), taken(other))

    assert true / 2 < found.absolute < true * 2
    assert found.relative == pytest.approx(found.absolute / max(float(one.norm()), float(other.norm())), rel=1e-3)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([True, False]),
        torch.tensor([1 + 2j, 3j]),
        torch.tensor([1 + 2j, 3j]).conj(),
        torch.tensor([[0.0, 1.0]]).to_sparse(),
        torch.tensor(3.0),
        torch.tensor([math.inf, math.nan, 1.0]),
    ],
)
def test_tensors_of_every_kind(tensor: torch.Tensor) -> None:
    """Are read without an error."""
    found = taken(tensor)

    assert found.num_nonfinite == (2 if tensor.numel() == 3 else 0)
    assert found == taken(tensor) or found.num_nonfinite


def test_a_mask_hides_nothing() -> None:
    """Scores with -inf above the diagonal are compared by what is below it."""
    mask = torch.ones(6, 6).triu(1).bool()
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(5))
    one, other = (taken(tensor.masked_fill(mask, -math.inf)) for tensor in (scores, scores * 1.001))

    assert one.num_nonfinite == 15
    assert 3e-4 < distance(one, other).relative < 3e-3
    assert distance(one, taken(scores)).relative == math.inf


@pytest.mark.parametrize("tensor", [torch.empty(0), torch.empty(3, device="meta")])
def test_tensors_without_values(tensor: torch.Tensor) -> None:
    """Have no fingerprint."""
    assert measure(tensor) is None
