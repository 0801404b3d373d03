"""What calls of torch functions mean, by their names and results."""

import copy
from collections import namedtuple
from typing import Any

import pytest
import torch
from torch.nn import functional

from gradinspect.checks.evidence.values.torch_calls import (
    MAX_DEPTH,
    MAX_NESTED,
    CallKind,
    GradientTouch,
    call_kind,
    function_name,
    gradient_touch,
    tensors_in,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.Tensor.add", CallKind.MAKES),
        ("torch.Tensor.add_", CallKind.WRITES),
        ("torch.Tensor.__iadd__", CallKind.WRITES),
        ("torch.Tensor.__add__", CallKind.MAKES),
        ("torch.Tensor.__setitem__", CallKind.WRITES),
        ("torch.Tensor.__getitem__", CallKind.MAKES),
        ("torch.Tensor.item", CallKind.TO_PYTHON),
        ("torch.Tensor.numpy", CallKind.TO_PYTHON),
        ("torch.autograd.grad", CallKind.GRADIENT),
        ("torch.Tensor.backward", CallKind.SKIPPED),
        ("torch._C._set_grad_enabled", CallKind.SWITCHES),
        ("torch.Tensor.requires_grad_", CallKind.FREEZES),
        ("torch.Tensor.requires_grad.__set__", CallKind.FREEZES),
        ("torch.Tensor.requires_grad.__get__", CallKind.SKIPPED),
        ("torch.Tensor.grad.__get__", CallKind.READS_GRAD),
        ("torch.Tensor.grad.__set__", CallKind.SKIPPED),
        ("torch.Tensor.data.__get__", CallKind.MAKES),
        ("torch.Tensor.data.__set__", CallKind.WRITES),
        ("torch.Tensor.T.__get__", CallKind.MAKES),
        ("torch.Tensor.shape.__get__", CallKind.SKIPPED),
        ("torch._foreach_add_", CallKind.SKIPPED),
    ],
)
def test_how_a_call_is_interpreted(name: str, kind: CallKind) -> None:
    """By its name; an attribute is read or set."""
    assert call_kind(name) is kind


@pytest.mark.parametrize(
    ("name", "touch"),
    [
        ("torch.Tensor.grad.__get__", GradientTouch.READS),
        ("torch.Tensor.grad.__set__", GradientTouch.SETS),
        ("torch.autograd.grad", None),
        ("torch.Tensor.zero_", GradientTouch.ZEROES),
        ("torch._foreach_zero_", GradientTouch.ZEROES),
        ("torch.Tensor.data.__get__", GradientTouch.READS_DATA),
        ("torch.Tensor.data.__set__", GradientTouch.SETS_DATA),
        ("torch.Tensor.requires_grad.__set__", GradientTouch.FREEZES),
        ("torch.Tensor.requires_grad.__get__", None),
        ("torch.Tensor.requires_grad_", GradientTouch.FREEZES),
        ("torch.Tensor.register_hook", GradientTouch.HOOKS),
        ("torch._amp_foreach_non_finite_check_and_unscale_", GradientTouch.UNSCALES),
        ("torch.Tensor.add_", GradientTouch.AVERAGES),
    ],
)
def test_what_a_call_does_to_gradients(name: str, touch: GradientTouch | None) -> None:
    """Reads, sets or clears them, or changes the tensor that they belong to."""
    assert gradient_touch(name) is touch


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (torch.Tensor.add, "torch.Tensor.add"),
        (functional.relu, "torch.nn.functional.relu"),
        (torch.ops.aten.add.Tensor, "aten.add"),
        (copy.copy, "copy"),
    ],
)
def test_a_function_has_the_name_of_its_documentation(func: Any, name: str) -> None:
    """An operator without its overload; another one its own."""
    assert function_name(func) == name


Pair = namedtuple("Pair", "first second")  # as programs make them


class Own(torch.Tensor):
    """A tensor of the program's own kind."""


def test_tensors_are_found_in_containers() -> None:
    """In their order, up to a depth and a number of elements; subclasses count."""
    x, y, weight = torch.ones(1), torch.zeros(1), torch.nn.Parameter(torch.ones(1))
    deep: object = x
    for _ in range(MAX_DEPTH):
        deep = [deep]

    def found(*values: object) -> list[int]:
        return [id(one) for one in tensors_in(*values)]

    assert found(x, 1, "text", None, weight) == [id(x), id(weight)]
    assert found([x, (y, 2)], {"a": weight}, Pair(y, x)) == [id(one) for one in (x, y, weight, y, x)]
    assert found([deep]) == []
    assert found(deep) == [id(x)]
    assert len(found([x] * (MAX_NESTED + 1))) == MAX_NESTED
    assert found({x}, object()) == []
    own = x.as_subclass(Own)
    assert found(own, [own, weight]) == [id(own), id(own), id(weight)]
