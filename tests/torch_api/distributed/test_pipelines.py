"""What a pipeline stage computes for shapes is told from what it computes for gradients."""

import sys
from types import SimpleNamespace

import pytest

from gradinspect.torch_api.distributed.pipelines import is_learning_shapes

MODULE = "torch.distributed.pipelining.stage"  # not imported: whether it is decides what ranks compare


class _Stage:
    def _backward_metadata_inference(self) -> bool:
        return self._gradients(3)

    def _gradients(self, depth: int) -> bool:
        return self._gradients(depth - 1) if depth else is_learning_shapes(sys._getframe())


def test_a_call_for_shapes_is_known_by_the_function_that_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever torch calls in between, and nothing else is taken for it."""
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace(PipelineStage=_Stage))

    assert _Stage()._backward_metadata_inference()
    assert not _Stage()._gradients(3)
    assert not is_learning_shapes(None)


def test_a_torch_without_that_function_learns_no_shapes_by_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is passed over then, nor in a program without a pipeline."""
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace(PipelineStage=object))

    assert not _Stage()._backward_metadata_inference()

    monkeypatch.delitem(sys.modules, MODULE)

    assert not _Stage()._backward_metadata_inference()
