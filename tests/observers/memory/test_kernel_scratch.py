"""What kernels need for themselves: asked from the kernel, and never at the program's expense."""

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from gradinspect.observers.memory import kernel_scratch
from gradinspect.observers.memory.kernel_scratch import MAX_TRIAL_BYTES, OF_SPARSE, UNKNOWN_SCRATCH, KernelScratch


def test_a_kernel_is_asked_once_for_equal_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer runs again and again with the same shapes."""
    asked: list[Any] = []

    def measured(*call: Any) -> int:
        asked.append(call)
        return 64

    monkeypatch.setattr(kernel_scratch, "_measured", measured)
    scratch = KernelScratch()
    with FakeTensorMode():
        found = [scratch.bytes_of(torch.ops.aten.sum.default, (torch.empty(size),), {}) for size in (3, 3, 4)]

    assert found == [64, 64, 64]
    assert len(asked) == 2


def test_a_kernel_that_an_earlier_run_has_measured_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is a run of the same program; a kernel on other shapes, or on another number of threads, is asked."""
    first, num_threads = KernelScratch(), torch.get_num_threads()
    monkeypatch.setattr(kernel_scratch, "_measured", lambda *_call: 64)
    with FakeTensorMode():
        first.bytes_of(torch.ops.aten.sum.default, (torch.empty(3),), {})
    monkeypatch.setattr(kernel_scratch, "_measured", lambda *_call: 96)
    later, copy = KernelScratch(first.measured), KernelScratch(first.measured)
    with FakeTensorMode():
        found = [later.bytes_of(torch.ops.aten.sum.default, (torch.empty(size),), {}) for size in (3, 4)]
        monkeypatch.setattr(kernel_scratch, "get_num_threads", lambda: num_threads + 1)
        found.append(copy.bytes_of(torch.ops.aten.sum.default, (torch.empty(3),), {}))

    assert found == [64, 96, 96]
    assert len(first.measured) == 1


def test_a_kernel_that_refuses_zeros_has_no_known_scratch() -> None:
    """The program goes on: it may never have given such arguments."""
    scratch = KernelScratch()
    with FakeTensorMode():
        scattered = (torch.empty(2), 0, torch.empty(2, 2, dtype=torch.int64), torch.empty(2))

        assert scratch.bytes_of(torch.ops.aten.scatter_add.default, scattered, {}) == 0


def test_a_matrix_with_gaps_between_rows_and_columns_is_copied_by_products() -> None:
    """As one head of `einsum('ijh,jhf->ihf')`; a matrix that is only transposed is not."""
    scratch, aten = KernelScratch(), torch.ops.aten
    with FakeTensorMode():
        heads = torch.empty(16, 16, 3).permute(2, 0, 1)
        other, vector, transposed = torch.empty(3, 16, 20), torch.empty(16), torch.empty(3, 16, 16).mT
        products = [scratch.bytes_of(aten.bmm.default, (one, other), {}) for one in (heads, transposed)]
        single = [scratch.bytes_of(aten.mm.default, (one[0], other[0]), {}) for one in (heads, transposed)]
        of_vector = scratch.bytes_of(aten.mv.default, (heads[0], vector), {})

    copy = 16 * 16 * 4
    assert products == [3 * 16 * 20 * 4 + copy, 0]
    assert single == [16 * 20 * 4 + copy, 0]
    assert of_vector == 16 * 4 + copy


def test_arguments_that_cannot_be_described_have_no_known_scratch() -> None:
    """Whatever a program passes to an operator, it gets its own error, not ours."""
    scratch = KernelScratch()
    with FakeTensorMode():
        assert scratch.bytes_of(torch.ops.aten.sum.default, (torch.empty(2), {}), {}) == 0
        assert scratch.bytes_of(torch.ops.aten.mm.default, (torch.empty(2, 2, dtype=torch.bfloat16),), {}) == 0


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_sparse_matrix_is_run_with_as_many_elements() -> None:
    """Its product is made twice; a compressed one does not say how many elements it has, and the reader is told."""
    scratch = KernelScratch()
    with FakeTensorMode(allow_non_fake_inputs=True):
        indices = torch.zeros(2, 8, dtype=torch.int64)
        product = (torch.sparse_coo_tensor(indices, torch.ones(8), (50, 50)), torch.empty(50, 3))
        compressed = (torch.empty(4, 4).to_sparse_csr(), torch.empty(4, 3))

        assert scratch.bytes_of(torch.ops.aten.mm.default, product, {}) == 2 * 50 * 3 * 4
        assert not scratch.notes
        assert scratch.bytes_of(torch.ops.aten.mm.default, compressed, {}) == 0
    assert list(scratch.notes) == [OF_SPARSE]


def test_a_kernel_that_is_too_large_is_named() -> None:
    """The reader is told what is not counted."""
    scratch = KernelScratch()
    with FakeTensorMode():
        assert scratch.bytes_of(torch.ops.aten.sum.default, (torch.empty(MAX_TRIAL_BYTES),), {}) == 0

    assert list(scratch.notes) == [UNKNOWN_SCRATCH]
