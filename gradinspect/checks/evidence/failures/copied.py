"""The tensor with a graph that copy.deepcopy() of an object refuses, and where in the object it is."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gradinspect.recording.names.variables import local_variables

_TENSOR = str(Path(torch.__file__).parent / "_tensor.py")


def is_of_copying(file: str) -> bool:
    """Return whether a file is that of the module which copies."""
    return file == copy.__file__


def refused_copy(frames: Sequence[FrameType], values: Mapping[str, Any]) -> tuple[str, torch.Tensor] | None:
    """Return the tensor whose copy was refused, and how the program reaches it: `net.last`.

    Args:
        frames: Those below the statement that failed, outermost first.
        values: What the statement names.
    """
    if not frames or frames[-1].f_code.co_filename != _TENSOR or not is_of_copying(frames[0].f_code.co_filename):
        return None
    refused, whole = local_variables(frames[-1]).get("self"), local_variables(frames[0]).get("x")
    written = next((name for name, value in values.items() if value is whole), None)
    if not isinstance(refused, torch.Tensor) or written is None:
        return None
    inside = [frame for frame in frames if frame.f_code.co_name == "_deepcopy_dict"]
    keys = [key for frame in inside if type(key := local_variables(frame).get("key")) is str]
    return ".".join((written, *(key for key in keys if not key.startswith("_")))), refused
