"""What is known to help against errors of torch."""

from typing import Any

import pytest

from gradinspect.checks.facts.failures import FailedCall, FailedTensor
from gradinspect.checks.rules.failure_remedies import known_remedies, known_remedy
from gradinspect.graph import Frame


def _tensor(name: str, dtype: str, **more: Any) -> FailedTensor:
    facts: dict[str, Any] = {"is_trained_leaf": False, "is_integer": not dtype.startswith("float"), **more}
    return FailedTensor(name=name, dtype=dtype, shape=(3,), device="cpu", **facts)


def _remedy(text: str, *tensors: FailedTensor, **more: Any) -> str:
    frame = Frame(file="train.py", line=9, code="...", function="<module>")
    return known_remedy(FailedCall(error=text[:20], text=text, frame=frame, called=None, tensors=tensors, **more))


@pytest.mark.parametrize(
    ("text", "tensors", "remedy"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (4x512 and 288x10)", (), "with 512 input features instead of 288"),
        ("expected input[4, 32, 32, 3] to have 3 channels, but got 32 channels", (), "permute(0, 3, 1, 2)"),
        ("expected input[4, 1, 16, 16] to have 16 channels, but got 1 channels", (), "in_channels=1"),
        ("Index tensor must have the same number of dimensions", (_tensor("a", "int64"),), "a.unsqueeze(1)"),
        ("Can't call numpy() on Tensor that requires grad", (), "train.py:9, write detach().numpy()"),
        ("index 4 is out of bounds for dimension 1 with size 4", (), "Dimension 1 has 4 entries"),
        (
            "einsum(): subscript h has size 6 for operand 1 which does not broadcast with previously seen size 2",
            (),
            "The letter h",
        ),
        ("must contain tensors, numpy arrays; found <class 'datetime.date'>", (), "A sample holds a datetime.date"),
        ("must contain tensors, numpy arrays; found <class 'NoneType'>", (), "A sample holds None"),
        (
            "Expected target size [16, 11], got [16, 7]",
            (_tensor("z", "float32"),),
            "train.py:9, pass z.transpose(1, 2)",
        ),
        ("Tried to step 7 times. The specified number of total steps is 6", (), "The schedule has 6 steps"),
        ("expected 2D or 3D input (got 4D input)", (), "one for 2D or 3D inputs, and gets 4D"),
        ('Missing\nUnexpected key(s) in state_dict: "_orig_mod.0.weight"', (), "removeprefix('_orig_mod.')"),
    ],
)
def test_names_and_numbers_are_filled_in(text: str, tensors: tuple[FailedTensor, ...], remedy: str) -> None:
    """They come from the message and from the statement."""
    assert remedy in _remedy(text, *tensors)


def test_a_remedy_that_lacks_a_name_is_passed_over() -> None:
    """Of two tensors, none is meant; without a class that is made, the next text counts."""
    text = "Index tensor must have the same number of dimensions"
    assert _remedy(text, _tensor("a", "int64"), _tensor("b", "int64")) == ""
    assert _remedy(text, _tensor("a", "int64"), _tensor("net.scale", "int64", is_of_module=True)) != ""
    ambiguous = "Boolean value of Tensor with more than one value is ambiguous"
    assert "any()" in _remedy(ambiguous)
    assert "MSELoss()(output, target)" in _remedy(ambiguous, constructed="MSELoss")


def test_names_of_the_program_are_data() -> None:
    """Braces in them are not filled in."""
    assert "{where}.unsqueeze(1)" in _remedy(
        "Index tensor must have the same number of dimensions", _tensor("{where}", "int64")
    )


def test_each_text_is_a_sentence() -> None:
    """It ends, and names no group that no pattern has."""
    assert all(one.endswith((".", "?")) and one[0].isupper() for one in known_remedies())


def test_what_is_not_known_is_empty() -> None:
    """The rule asks a question then."""
    assert _remedy("something new") == ""
