"""What torch functions may write to."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from gradinspect.checks.evidence.in_place.write_access import Argument, access_of, has_out_of_place_form


@pytest.mark.parametrize(
    ("args", "kwargs", "value"),
    [((1, 2), {}, 2), ((1,), {"b": 3}, 3), ((1,), {}, None), ((1, 2), {"b": 3}, 2), ((), {"b": 3}, 3)],
)
def test_an_argument_is_given_by_its_position_or_name(
    args: tuple[Any, ...], kwargs: dict[str, Any], value: int | None
) -> None:
    """Else it is not given."""
    assert Argument(1, "b").of(args, kwargs) == value


@pytest.mark.parametrize(
    ("func", "name", "writes"),
    [
        (torch.Tensor.add_, "torch.Tensor.add_", True),
        (torch.Tensor.__setitem__, "torch.Tensor.__setitem__", True),
        (torch.Tensor.add, "torch.Tensor.add", False),
        (torch.Tensor.__mul__, "torch.Tensor.__mul__", False),
        (torch.add, "torch.add", False),  # but for out=
        (torch.Tensor.__getitem__, "torch.Tensor.__getitem__", False),
        (torch.Tensor.grad.__get__, "torch.Tensor.grad.__get__", False),
        (torch.Tensor.backward, "torch.Tensor.backward", False),
        (torch.autograd.grad, "torch.autograd.grad", False),
        (functional.relu, "torch.nn.functional.relu", True),  # by a flag, or in code of its own
        (print, "print", True),  # it is not known
    ],
)
def test_most_operators_write_to_no_argument(func: Any, name: str, *, writes: bool) -> None:
    """By their schemas; a function in Python may do anything."""
    assert access_of(func, name).arguments == writes
    assert access_of(func, name).silent == ()


@pytest.mark.parametrize(
    ("func", "name", "silent", "when"),
    [
        (functional.batch_norm, "functional.batch_norm", [(1, "running_mean"), (2, "running_var")], "training"),
        (torch.batch_norm, "torch.batch_norm", [(3, "running_mean"), (4, "running_var")], "training"),
        (torch.native_batch_norm, "torch.native_batch_norm", [(3, "running_mean"), (4, "running_var")], "training"),
        (torch.Tensor.apply_, "torch.Tensor.apply_", [(0, "self")], None),
        (torch.Tensor.map_, "torch.Tensor.map_", [(0, "self")], None),
    ],
)  # fmt: skip
def test_few_functions_write_without_raising_a_version(
    func: Any, name: str, silent: list[tuple[int, str]], when: str | None
) -> None:
    """Batch norm in training only."""
    access = access_of(func, name)

    assert access.arguments
    assert [*access.silent] == silent
    assert (access.when and access.when.name) == when


def test_a_fused_optimizer_writes_its_parameters_and_states() -> None:
    """Not the gradients, nor its numbers."""
    names = [one.name for one in access_of(torch._fused_adam_, "torch._fused_adam_").silent]

    assert names[0] == "self"
    assert "exp_avgs" in names
    assert "lr" not in names
    assert access_of(torch._fused_adam_, "torch._fused_adam_").when is None


@pytest.mark.parametrize(
    ("op", "has_form"),
    [
        ("clamp_", True),
        ("zero_", False),
        ("add", False),
        ("relu_", True),
        ("dropout_", True),
        ("frob_", False),
        ("elu_", True),
        ("_foreach_add_", True),
    ],
)
def test_which_operators_have_a_form_that_makes_a_new_tensor(op: str, *, has_form: bool) -> None:
    """A method, or a function of torch; `zero_` has none."""
    assert has_out_of_place_form(op) == has_form
