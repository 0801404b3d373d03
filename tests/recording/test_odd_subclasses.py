"""Subclasses of tensors whose own code fails when it is asked: a placeholder and a warning, never an error."""

from typing import Any

import pytest
import torch

import gradinspect as gi
from gradinspect.recording.values.storages import MOST_NESTED, plain_tensors


class Wrapper(torch.Tensor):
    """Holds another tensor, and says so by what a test gives it."""

    answers: Any = (["inner"], None)

    @staticmethod
    def __new__(cls: Any, inner: torch.Tensor) -> "Wrapper":
        """Look like the inner tensor, without its memory."""
        made: Wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @property
    def again(self) -> "Wrapper":
        """Make another wrapper each time."""
        return type(self)(self.inner)

    def __tensor_flatten__(self) -> Any:
        """Answer, or fail."""
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute with what is inside."""
        return func(*(one.inner if isinstance(one, Wrapper) else one for one in args), **(kwargs or {}))

    __torch_function__ = torch._C._disabled_torch_function_impl


class Property:
    """An attribute that fails when it is read."""

    def __get__(self, tensor: object, kind: object = None) -> object:
        """Fail."""
        raise ZeroDivisionError


ANSWERS = [ZeroDivisionError(), None, (), (3, None), ([3], None), (["nothing"], None)]


@pytest.mark.parametrize("answers", ANSWERS, ids=["raises", "None", "empty", "a number", "no name", "no attribute"])
def test_a_wrapper_that_does_not_say_what_is_in_it_is_named(answers: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is not guessed, and that of others is counted."""
    monkeypatch.setattr(Wrapper, "answers", answers)
    x, odd = torch.ones(4, requires_grad=True), Wrapper(torch.ones(4))
    failed: list[type] = []
    found = list(plain_tensors([odd, x], failed.append))
    graph = gi.capture(x * odd)

    assert [x] == found
    assert failed == [Wrapper]
    assert [node.name for node in graph.nodes] == ["MulBackward0", "AccumulateGrad"]
    assert [one for one in graph.warnings if "Wrapper' is not counted: its __tensor_flatten__ failed." in one]


def test_a_wrapper_that_works_is_counted_without_a_warning() -> None:
    """Its inner tensor is what has memory."""
    x, wrapper = torch.ones(4, requires_grad=True), Wrapper(torch.ones(4))

    assert list(map(id, plain_tensors(wrapper))) == [id(wrapper.inner)]
    assert not [one for one in gi.capture(x * wrapper).warnings if "Wrapper" in one]


def test_a_wrapper_that_makes_wrappers_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is another object."""
    monkeypatch.setattr(Wrapper, "answers", (["again"], None))
    failed: list[type] = []

    assert list(plain_tensors(Wrapper(torch.ones(1)), failed.append)) == []
    assert failed == [Wrapper]
    assert MOST_NESTED >= 10


@pytest.mark.parametrize("name", ["shape", "device", "dtype", "layout", "is_leaf", "grad", "numel", "_version", "data"])
def test_a_leaf_with_a_property_that_fails_is_recorded(name: str) -> None:
    """What cannot be read is left out; its node is there."""
    kind = type("Odd", (torch.Tensor,), {"__torch_function__": torch._C._disabled_torch_function_impl})
    leaf = torch.ones(3).as_subclass(kind).requires_grad_()
    loss = (leaf * leaf).as_subclass(torch.Tensor).sum()
    setattr(kind, name, Property())
    graph = gi.capture(loss)
    (node,) = (node for node in graph.nodes if node.leaf is not None)

    assert node.leaf is not None
    assert str(node.leaf.info.subclass).endswith("Odd")
