"""What a pipeline stage computes for shapes is told from what it computes for gradients."""

import sys

import pytest
from torch.distributed.pipelining.stage import PipelineStage

from gradinspect.torch_api.pipelines import is_learning_shapes


class _Stage:
    def _backward_metadata_inference(self) -> bool:
        return self._gradients(3)

    def _gradients(self, depth: int) -> bool:
        return self._gradients(depth - 1) if depth else is_learning_shapes(sys._getframe())


def test_a_call_for_shapes_is_known_by_the_function_that_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever torch calls in between, and nothing else is taken for it."""
    monkeypatch.setattr(PipelineStage, "_backward_metadata_inference", _Stage._backward_metadata_inference)

    assert _Stage()._backward_metadata_inference()
    assert not _Stage()._gradients(3)
    assert not is_learning_shapes(None)


def test_a_torch_without_that_function_learns_no_shapes_by_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is passed over then."""
    monkeypatch.delattr(PipelineStage, "_backward_metadata_inference")

    assert not _Stage()._backward_metadata_inference()
