"""Properties of a program in the place of torch's attributes are read by the program alone, and stand there again."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

from gradinspect.torch_api.patching.attributes import CoveredAttributes

TENSOR = torch.ones(2, 3)
SHAPE: Any = torch.Tensor.shape
OURS: dict[str, Any] = {"__name__": "gradinspect.somewhere"}


def read_by_us(holder: object, name: str) -> Any:
    """Read an attribute in a module of ours."""
    return eval(f"holder.{name}", {**OURS, "holder": holder})  # noqa: S307  # the globals make it ours


@contextmanager
def counted(name: str, holder: type, get: Callable[[Any], Any], put: Any = None) -> Iterator[list[str]]:
    """Replace an attribute by a property that notes who reads it."""
    reads: list[str] = []

    def counting(instance: Any) -> Any:
        reads.append(name)
        return get(instance)

    with mock.patch.object(holder, name, property(counting, put), create=True):
        yield reads


def test_we_read_past_a_property_of_the_program() -> None:
    """The program's own reads are counted, ours are not."""
    covered = CoveredAttributes()
    with counted("shape", torch.Tensor, SHAPE.__get__) as reads:
        covered.look()

        assert read_by_us(TENSOR, "shape") == (2, 3)
        assert reads == []

        assert TENSOR.shape == (2, 3)
        assert reads == ["shape"]
        covered.close()


def test_an_attribute_in_the_dict_of_an_object_is_read_there() -> None:
    """If the property keeps it elsewhere, we ask the property, too."""
    model, covered = nn.Linear(1, 1), CoveredAttributes()
    with counted("training", nn.Module, lambda _: "theirs") as reads:
        covered.look()

        assert read_by_us(model, "training") is True
        assert reads == []

        del vars(model)["training"]

        assert read_by_us(model, "training") == "theirs"
        covered.close()


def test_the_property_of_the_program_stands_there_again() -> None:
    """Also if two recordings cover it and end in the order in which they began, or if the program takes it away."""
    first, second = CoveredAttributes(), CoveredAttributes()
    with counted("shape", torch.Tensor, SHAPE.__get__) as reads:
        theirs = vars(torch.Tensor)["shape"]
        first.look()
        second.look()
        first.close()
        second.look()

        assert read_by_us(TENSOR, "shape") == (2, 3)
        assert reads == []

        second.close()

        assert theirs is vars(torch.Tensor)["shape"]
        second.look()
    second.close()

    assert "shape" not in vars(torch.Tensor)


def test_a_property_that_sets_and_fails_does_so_as_before() -> None:
    """Its setter is called, one that it lacks is an error, and a traceback has no frame of ours."""
    put: list[object] = []
    covered = CoveredAttributes()

    def fail(_: object) -> None:
        raise ValueError("theirs")

    with counted("data", torch.Tensor, fail, lambda _, value: put.append(value)), counted("shape", torch.Tensor, fail):
        covered.look()
        TENSOR.data = TENSOR
        with pytest.raises(AttributeError, match="no setter"):
            TENSOR.shape = (3, 2)
        with pytest.raises(ValueError, match="theirs") as caught:
            assert TENSOR.data
        covered.close()

    assert put[0] is TENSOR
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)[1:]] == ["counting", "fail"]


def test_nothing_is_covered_where_nothing_was_replaced() -> None:
    """What a program puts there that is no property is left alone."""
    covered = CoveredAttributes()
    with mock.patch.object(torch.Tensor, "name", "theirs"):
        covered.look()

        assert vars(torch.Tensor)["name"] == "theirs"
        covered.close()


def test_we_read_past_a_property_of_a_subclass() -> None:
    """A tensor class of the program's that overrides `grad` notes its own readers only; torch's classes stay."""
    reads: list[str] = []

    class Parameter(nn.Parameter):
        @property
        def grad(self) -> Any:
            reads.append("grad")
            return torch.Tensor.grad.__get__(self)

    theirs, parameter, covered = vars(Parameter)["grad"], Parameter(torch.ones(2)), CoveredAttributes()
    covered.look()

    assert read_by_us(parameter, "grad") is None
    assert reads == []
    assert parameter.grad is None
    assert reads == ["grad"]

    covered.close()
    assert vars(Parameter)["grad"] is theirs
    assert type(vars(torch.nn.parameter.UninitializedTensorMixin)["shape"]) is property


def test_a_metaclass_is_not_asked() -> None:
    """It may fail, or answer anything."""
    asked: list[str] = []

    class Meta(type(torch.Tensor)):  # type: ignore[misc]  # that of tensors
        def __getattribute__(cls, name: str) -> Any:
            asked.append(name)
            return super().__getattribute__(name)

    class Strange(torch.Tensor, metaclass=Meta):
        pass

    Strange.__module__ = 3  # type: ignore[assignment]
    asked.clear()
    covered = CoveredAttributes()
    covered.look()
    covered.close()

    assert asked == []


def test_we_read_past_a_method_that_answers_all_reads() -> None:
    """Of a program's own optimizer; what only that method has, it is asked for. It stands there again afterwards."""
    reads: list[str] = []

    class Counted(torch.optim.SGD):
        def __getattribute__(self, name: str) -> Any:
            reads.append(name)
            return "theirs" if name == "made_up" else super().__getattribute__(name)

    covered, theirs = CoveredAttributes(), Counted.__getattribute__
    optimizer = Counted([torch.ones(1, requires_grad=True)])
    reads.clear()
    covered.look()
    covered.look()

    assert read_by_us(optimizer, "param_groups") is vars(optimizer)["param_groups"]
    assert read_by_us(optimizer, "made_up") == "theirs"
    assert reads == ["__dict__", "made_up"]
    assert optimizer.made_up == "theirs"
    with pytest.raises(AttributeError) as caught:
        _ = optimizer.missing
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2
    covered.close()
    assert Counted.__getattribute__ is theirs
