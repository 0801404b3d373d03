"""Norms, means, extremes and counts, at every magnitude, beside the same by exact arithmetic of Python."""

import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from gradinspect.recording.values.magnitudes import (
    NO_ELEMENTS,
    PIECE,
    Magnitudes,
    PendingFigures,
    _row,
    combined,
    combined_norm,
    elements_of,
    fetched,
    magnitudes_of,
    norm_of,
    pending_difference,
    pending_magnitudes,
    pending_norm,
    pieces_of,
    why_failed,
    why_unread,
)
from gradinspect.torch_api.patching.originals import ops

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
EDGES = (1e-45, 1e-25, 1e-7, 1.0, 300.0, 1e20, 3e38)


def exact(values: list[float]) -> tuple[float, float]:
    """Return the norm and the mean of finite numbers, to the last digit of a float."""
    squares = sum(Fraction(value) ** 2 for value in values)
    scale = Fraction(2) ** 2400  # so that the integer root has digits enough
    root = Fraction(math.isqrt(int(squares * scale))) / Fraction(2) ** 1200
    return float(root), float(sum(map(Fraction, values)) / len(values))


class WithoutDoubles(TorchDispatchMode):
    """Refuses float64, as MPS does."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dtype is torch.float64:
            raise TypeError("Cannot convert a tensor to float64 on this device")
        return result


def without_float64(tensor: torch.Tensor) -> Magnitudes:
    """Measure as on a device that has no float64."""
    with WithoutDoubles():
        pending = PendingFigures(tensor.numel(), [_row(part, torch.float32) for part in pieces_of(elements_of(tensor))])
        return combined(pending, fetched([pending])[0])


def as_on_a_device(tensor: torch.Tensor) -> Magnitudes:
    """Measure without looking at a value in between."""
    pending = pending_magnitudes(tensor)
    return combined(pending, fetched([pending])[0])


@given(
    st.sampled_from(DTYPES),
    st.lists(st.tuples(st.sampled_from((*EDGES, 0.0)), st.floats(-2, 2)), min_size=1, max_size=9),
)
def test_figures_are_those_of_exact_arithmetic(dtype: torch.dtype, parts: list[tuple[float, float]]) -> None:
    """Of any dtype and magnitude, on the CPU, on a device, and on one without float64; the counts are exact."""
    tensor = torch.tensor([size * factor for size, factor in parts], dtype=torch.float64).to(dtype)
    values = tensor.double().tolist()
    if not all(map(math.isfinite, values)):
        return
    norm, mean = exact(values)
    least = max(map(abs, values)) * 1e-5
    ways = (magnitudes_of, as_on_a_device, *([] if dtype is torch.float64 else [without_float64]))
    for found in (way(tensor) for way in ways):
        assert found.norm == pytest.approx(norm, rel=1e-5, abs=0)
        assert (found.norm > 0) == any(values)
        assert found.mean == pytest.approx(mean, rel=1e-4, abs=least)
        assert (found.low, found.high) == (min(values), max(values))
        assert (found.num_nonzero, found.num_nonfinite) == (sum(map(bool, values)), 0)
    assert norm_of(tensor) == pytest.approx(norm, rel=1e-5, abs=0)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-25, 1.0, 1e20, 1e200, 1e307])
def test_doubles_are_scaled_too(size: float) -> None:
    """Their squares leave the range of float64 as those of float32 leave its own."""
    tensor = torch.full((4,), size, dtype=torch.float64)

    assert magnitudes_of(tensor).norm == pytest.approx(2 * size, rel=1e-3)
    assert as_on_a_device(tensor).norm == pytest.approx(2 * size, rel=1e-3)
    assert magnitudes_of(tensor).mean == pytest.approx(size, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128])
@pytest.mark.parametrize("size", [6e-8, 1.0, 6e4, 1e-25, 2e38])
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_complex_elements_are_measured_by_their_absolute_values(dtype: torch.dtype, size: float) -> None:
    """Which may be too large for the dtype, though no part is; then they are finite all the same."""
    tensor = torch.full((3,), complex(size, size), dtype=torch.complex128).to(dtype)
    if not torch.isfinite(tensor).all() or not tensor.any():
        pytest.skip("This dtype does not hold the number.")
    real = float(tensor.to(torch.complex128).abs()[0])
    for found in (magnitudes_of(tensor), as_on_a_device(tensor)):
        assert found.norm == pytest.approx(math.sqrt(3) * real, rel=1e-5)
        assert found.high == pytest.approx(real, rel=1e-5)
        assert (found.num_nonzero, found.num_nonfinite) == (3, 0)


@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nonfinite_elements_are_counted(dtype: torch.dtype, bad: float) -> None:
    """And make the norm what IEEE arithmetic makes it."""
    tensor = torch.tensor([1.0, bad, 0.0, bad], dtype=dtype)
    for found in (magnitudes_of(tensor), as_on_a_device(tensor), combined_of_pieces(tensor)):
        assert (found.num_nonzero, found.num_nonfinite) == (3, 2)
        assert math.isnan(found.norm) if math.isnan(bad) else found.norm == math.inf
        assert math.isnan(found.mean) if math.isnan(bad) else found.mean == bad


def combined_of_pieces(tensor: torch.Tensor) -> Magnitudes:
    """Measure each element by itself."""
    pending = PendingFigures(tensor.numel(), [_row(part, torch.float64) for part in pieces_of(tensor, 1)])
    return combined(pending, fetched([pending])[0])


def test_tensors_of_no_or_one_element_have_figures() -> None:
    """No elements have a norm of 0, also if a sparse tensor stores none; one without dimensions is like any other."""
    sparse = torch.zeros(5).to_sparse()

    assert magnitudes_of(torch.empty(0, 3)) == magnitudes_of(sparse) == as_on_a_device(torch.empty(0)) == NO_ELEMENTS
    assert magnitudes_of(torch.tensor(-2.0)) == (2.0, -2.0, -2.0, -2.0, 1, 0)
    assert as_on_a_device(torch.tensor(-2.0)) == (2.0, -2.0, -2.0, -2.0, 1, 0)


def test_pieces_cover_a_tensor_once() -> None:
    """Their figures put together are those of the whole."""
    tensor = torch.randn(7, 11, generator=torch.Generator().manual_seed(0)).t()
    parts = list(pieces_of(elements_of(tensor), 10))
    pending = PendingFigures(77, [_row(part, torch.float64) for part in parts])
    together, whole = combined(pending, fetched([pending])[0]), magnitudes_of(tensor)

    assert [part.numel() for part in parts] == [10] * 7 + [7]
    assert together == pytest.approx(whole, rel=1e-6)
    assert PIECE < 2**24  # float32 holds the counts of a piece


def test_figures_of_a_device_come_in_one_transfer() -> None:
    """However many tensors and kinds of figures there are."""
    tensors = [torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(4, dtype=torch.bfloat16)]
    several = [*map(pending_magnitudes, tensors), pending_norm(tensors[0])]
    transfers: list[int] = []
    kept = ops.tolist

    def counted(tensor: torch.Tensor) -> Any:
        transfers.append(tensor.numel())
        return kept(tensor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "tolist", counted)
        rows = fetched(several)

    assert transfers == [3 * 7 + 2]
    assert combined_norm(rows[-1]) == pytest.approx(math.sqrt(3))
    assert [combined(one, row).norm for one, row in zip(several[:3], rows, strict=False)] == pytest.approx(
        [math.sqrt(3), math.sqrt(2), 2.0]
    )


@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("permuted", [False, True])
def test_a_difference_is_taken_in_pieces(dtype: torch.dtype, permuted: bool) -> None:  # a parameter
    """It is that of the tensor and its earlier copy, whatever their order in memory."""
    generator = torch.Generator().manual_seed(0)
    before = torch.randn(6, 5, generator=generator).to(dtype)
    after = (before.float() + 1e-2 * torch.randn(6, 5, generator=generator)).to(dtype)
    expected = float((after.double() - before.double()).norm())
    pending = pending_difference(after, before.t().contiguous().t() if permuted else before, 7)

    assert combined_norm(fetched([pending])[0]) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(RuntimeError, match="its shape has changed"):
        pending_difference(after, before[:3], 7)


def test_the_reasons_are_said() -> None:
    """Why a tensor cannot be read, or its figures cannot be computed."""
    missing = NotImplementedError("Could not run 'aten::aminmax' with arguments from the 'sim' backend. This could be")

    assert why_unread(torch.ones(2)) is None
    assert why_unread(torch.ones(2, device="meta")) == "on the meta device, which has no values"
    assert why_failed(missing, torch.ones(2)) == "'aten::aminmax' is not implemented on cpu"
    assert why_failed(RuntimeError("first\nsecond"), None) == "first"
    assert why_failed(RuntimeError("x" * 100), None) == "x" * 77 + "..."
    assert why_failed(RuntimeError(), None) == "RuntimeError"
