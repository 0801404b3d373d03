"""Where a callable runs, and its inputs."""

import functools
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradinspect.errors import GradInspectError
from gradinspect.runner.callables.inputs import make_inputs
from gradinspect.runner.callables.placement import device_of, existing_device, move
from gradinspect.source import parse_input


class Holder:
    """Is no module, and holds one."""

    def __init__(self) -> None:
        """Hold it."""
        self.kind = nn.Linear
        self.model = nn.Linear(3, 2, device="meta")

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Call it."""
        return torch.as_tensor(self.model(x))


class Refuses(nn.Module):
    """Overrides what would list its parameters."""

    def __init__(self) -> None:
        """Hold a buffer on the CPU, and a parameter elsewhere."""
        super().__init__()
        self.register_buffer("positions", torch.arange(3))
        self.inner = nn.Linear(3, 2, device="meta")

    def parameters(self, recurse: bool = True) -> None:
        """Have no parameters."""
        raise ZeroDivisionError


def closure() -> Callable[[torch.Tensor], torch.Tensor]:
    """Make a function that knows a model by a variable of its caller."""
    model = nn.Linear(3, 2, device="meta")
    return lambda x: model(x).sum()


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 2, device="meta"),
        lambda: nn.Linear(3, 2, device="meta").forward,
        lambda: functools.partial(nn.Linear(3, 2, device="meta"), input=None),
        lambda: nn.Sequential(nn.Tanh(), nn.Linear(3, 2, device="meta"), nn.Linear(2, 1)),
        lambda: nn.Sequential(nn.BatchNorm1d(3, affine=False, device="meta")),
        Holder,
        Refuses,
        closure,
    ],
    ids=["model", "method", "partial", "several devices", "buffers only", "object", "own parameters()", "closure"],
)
def test_inputs_go_where_the_first_parameter_is(make: Callable[[], object]) -> None:
    """However the model is called, and without running code of its own."""
    device = device_of(make())
    (x,), keywords = make_inputs([parse_input("2x3"), parse_input("y=2:int64")], device)

    assert device == torch.device("meta")
    assert {x.device, keywords["y"].device} == {device}


def test_inputs_of_a_function_go_where_the_program_makes_its_tensors() -> None:
    """With the same values as anywhere else."""
    specs = [parse_input("2x3")]
    (expected,), _ = make_inputs(specs)
    with torch.device("meta"):
        (x,), _ = make_inputs(specs)

    assert device_of(torch.sin) is None
    assert x.is_meta
    assert torch.equal(make_inputs(specs, torch.device("cpu"))[0][0], expected)


def test_the_models_of_a_callable_are_moved() -> None:
    """Its parameters stay the same objects, as an optimizer needs."""
    holder = Holder()
    holder.model = nn.Linear(3, 2)
    weight = holder.model.weight

    assert move(holder, "meta") == torch.device("meta")
    assert all(one.is_meta for one in holder.model.parameters())
    assert weight is not holder.model.weight or weight.is_meta


@pytest.mark.parametrize("name", ["gpu", "cpu:1", "cuda:99", "xpu:7", "", "cuda:-1"])
def test_a_device_that_is_not_there_is_one_sentence(name: str) -> None:
    """It names those that are."""
    with pytest.raises(GradInspectError) as caught:
        existing_device(name)

    assert str(caught.value).startswith(f"There is no device '{name}'.")
    assert "Give one of: cpu" in str(caught.value.hint)


def test_a_model_without_values_is_not_moved_to_where_values_are() -> None:
    """Torch would end in a traceback."""
    with pytest.raises(GradInspectError, match="'--device cpu' cannot move a model on 'meta'"):
        move(nn.Linear(3, 2, device="meta"), "cpu")
