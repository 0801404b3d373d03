"""Tensors made from the shapes of --input."""

import pytest

from gradinspect.errors import GradInspectError
from gradinspect.runner.callables.inputs import make_inputs
from gradinspect.source import parse_input


@pytest.mark.parametrize("shape", ["999999999999x9", "999999999999999999x999999999999999999", "9999999999999:bool",
                                   "9999999999999:int64", "x".join(["999999999"] * 60)])  # fmt: skip
def test_a_tensor_that_no_memory_holds_is_one_sentence(shape: str) -> None:
    """It is the shape that is wrong, not the program."""
    with pytest.raises(GradInspectError, match=r"cannot be made: it takes (.* TiB|more than 64 bits can count)\."):
        make_inputs([parse_input(shape)])
