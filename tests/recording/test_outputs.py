"""The tensors with a graph in what a program gives."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch.autograd.graph import get_gradient_edge

from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import final_outputs, has_graph, outputs_in


@dataclass
class Result:
    """An output with fields."""

    loss: torch.Tensor
    rest: object = None


class Pair(NamedTuple):
    """An output with named elements."""

    first: object
    second: object


class ModelOutput(OrderedDict[str, object]):
    """What transformers return."""

    def to_tuple(self) -> tuple[object, ...]:
        """Return the values."""
        return tuple(self.values())


def make() -> torch.Tensor:
    """Make a tensor with a graph."""
    return torch.ones(2, requires_grad=True) * 2


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (make(), ["out"]),
        ([make(), make()], ["out[0]", "out[1]"]),
        ((make(), [make()]), ["out[0]", "out[1][0]"]),
        ({"a": make(), 3: make()}, ["out['a']", "out[3]"]),
        (Result(make(), rest=(1, make())), ["out.loss", "out.rest[1]"]),
        (Pair(make(), "x"), ["out.first"]),
        (ModelOutput(loss=make(), logits=make()), ["out.loss", "out.logits"]),
        (torch.ones(2, requires_grad=True), ["out"]),  # a leaf
        (get_gradient_edge(make()), ["out"]),
        (Result, []),
        ([torch.ones(2), "text", None, 3, {1, 2}], []),
    ],
)
def test_parts_have_the_names_by_which_they_are_reached(value: object, names: list[str]) -> None:
    """In the order of the container; a class of fields is no container."""
    assert [output.name for output in outputs_in(value, "out")] == names
    assert [output.name for output in outputs_in(value)] == [None] * len(names)


def test_each_tensor_is_there_once_under_its_first_name() -> None:
    """Also in a container that contains itself."""
    x = make()
    endless: list[Any] = [x, x]
    endless.append(endless)

    assert [output.name for output in outputs_in(endless, "out")] == ["out[0]"]


def test_the_edge_of_an_output() -> None:
    """The node that made it and which of its outputs it is; of a leaf, the node that accumulates its gradient."""
    first, second = torch.ones(2, 2, requires_grad=True).unbind()
    x = torch.ones(2, requires_grad=True)
    (by_tensor,) = outputs_in(second)
    (by_edge,) = outputs_in(get_gradient_edge(second))
    (of_leaf,) = outputs_in(x)

    assert by_tensor.edge == by_edge.edge == (first.grad_fn, 1)
    assert of_leaf.edge[0].variable is x
    assert of_leaf.edge[1] == 0


def test_backward_starts_from_what_has_a_graph() -> None:
    """All of them must; a leaf that requires no gradient has none, and of an edge nothing is asked."""
    x = torch.ones(2, requires_grad=True)

    assert has_graph([make(), x, get_gradient_edge(x)])
    assert not has_graph([make(), torch.ones(2)])
    assert not has_graph([make().detach()])


def test_the_final_outputs_are_those_from_which_no_other_was_computed() -> None:
    """Under their first name, in order; leaves, modules and other variables are none."""
    x = torch.ones(2, requires_grad=True)
    hidden = x * 2
    loss = hidden.sum()
    other = x.exp()
    variables = [
        Variable("x", x), Variable("hidden", hidden), Variable("loss", loss), Variable("again", loss),
        Variable("net", torch.nn.Linear(1, 1)), Variable("other", other), Variable("plain", torch.ones(1)),
    ]  # fmt: skip

    assert [output.name for output in final_outputs(variables)] == ["loss", "other"]
    assert final_outputs([]) == []
