"""Which functions share the variable of a loop, and which parameters they may have been made for."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.values.late_functions import LateFunctions, late_functions


def seen(functions: Any) -> list[LateFunctions]:
    """Look from a frame in which a variable holds some functions."""
    assert functions is not None
    return [one for one in late_functions(sys._getframe(), ()) if one.code.co_filename == __file__]


def in_loop(values: list[Any]) -> list[Callable[[], Any]]:
    """Make functions that share a variable."""
    made = []
    for value in values:

        def read() -> Any:
            return value  # noqa: B023  # the mistake

        made.append(read)
    return made


def test_functions_of_a_loop_share_its_variable() -> None:
    """Also those of a comprehension, and those in a dict."""
    weights = [torch.randn(3, requires_grad=True) for _ in range(3)]
    (loop,) = seen(in_loop(weights))
    (listed,) = seen([lambda: weights[i] for i in range(3)])  # noqa: B023  # the mistake
    (table,) = seen({i: lambda: weights[i] for i in range(2)})  # noqa: B023  # the mistake

    assert [(one.variable, one.num_functions) for one in (loop, listed, table)] == [("value", 3), ("i", 3), ("i", 2)]
    assert all(one.leads_to(weights[0]) for one in (loop, listed, table))
    assert not any(one.leads_to(torch.randn(4, requires_grad=True)) for one in (loop, listed, table))


@pytest.mark.parametrize(
    "functions",
    [
        [lambda i=i: i for i in range(3)],
        [lambda: 0 for _ in range(3)],
        [lambda: 0],
        [len, len],
        (),
    ],
    ids=["a default", "no variable", "one", "not of the program", "nothing"],
)
def test_other_functions_do_not(functions: Any) -> None:
    """Nothing is said of them."""
    assert not seen(functions)


def test_modules_lead_to_their_parameters() -> None:
    """And to those of layers that are like them; a list of parameters leads to those that are in it."""
    layers, other = nn.ModuleList([nn.Linear(2, 3) for _ in range(2)]), nn.Linear(5, 5)
    several = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(2)])
    (of_layer,) = seen(in_loop(list(layers)))
    (of_list,) = seen(in_loop([several, several]))
    (nested,) = seen(in_loop([[layers[0]], [layers[1]]]))

    assert of_layer.leads_to(layers[0].weight)
    assert not of_layer.leads_to(other.weight)
    assert of_list.leads_to(several[0])
    assert not of_list.leads_to(nn.Parameter(torch.ones(2)))
    assert nested.leads_to(layers[1].bias)
    assert not nested.leads_to(layers[0].bias)


def test_functions_that_a_module_has_are_seen() -> None:
    """As attributes, of its parts too; a variable that was not assigned yet has no value."""
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].calls = in_loop([1, 2])

    def outer() -> list[LateFunctions]:
        later: int
        made = [lambda: (number, later) for number in range(2)]  # noqa: B023  # the mistake
        found = seen(made)
        later = 1
        return found[later - 1 :]

    assert {one.variable for one in outer()} == {"value", "number"}
