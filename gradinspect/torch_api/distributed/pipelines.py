"""Recognize when a pipeline stage of torch only finds out shapes.

NOTE [Shapes of a pipeline]
Before its first step, a stage learns the shapes of its gradients by a backward on tensors of memory that nobody has
written. What it computes is thrown away, and may be NaN. It is no backward call of the program.
Source: torch/distributed/pipelining/stage.py, `_backward_metadata_inference`, torch 2.13.
"""

import sys
from types import FrameType

_MODULE = "torch.distributed.pipelining.stage"  # imported by a program that has such a stage, and never by us
_LEARNS = "_backward_metadata_inference"
_DEPTH = 12  # calls between that function and the engine


def is_learning_shapes(frame: FrameType | None) -> bool:
    """Return whether the engine is called from here for the shapes of a pipeline."""
    stage = getattr(sys.modules.get(_MODULE), "PipelineStage", None)
    code = getattr(getattr(stage, _LEARNS, None), "__code__", None)
    if code is None:
        return False
    for _ in range(_DEPTH):
        if frame is None or frame.f_code is code:
            return frame is not None
        frame = frame.f_back
    return False
