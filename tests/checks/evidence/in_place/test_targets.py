"""What a call that writes is called."""

from typing import Any

import pytest

from gradinspect.checks.evidence.in_place.targets import writing_operator


@pytest.mark.parametrize(
    ("function", "kwargs", "expected"),
    [
        ("torch.Tensor.__iadd__", {}, "add_"),
        ("torch.Tensor.add_", {}, "add_"),
        ("torch.nn.functional.relu", {"inplace": True}, "relu_"),
    ],
)
def test_a_writing_operator_is_named_as_torch_names_it(function: str, kwargs: dict[str, Any], expected: str) -> None:
    """An assignment with an operator, a method, and a function that was asked to."""
    assert writing_operator(function, (), kwargs) == expected
