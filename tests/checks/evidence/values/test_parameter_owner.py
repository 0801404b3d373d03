"""Which module a parameter belongs to, and whether it was called."""

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.values.parameter_owner import Owner, owner_of


class Net(nn.Module):
    """A body, experts of which each input takes one, and a table."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(2, 2)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)) for _ in range(3)])
        self.table = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.register_module("nothing", None)


def owner(net: Net, path: str, *called: str) -> Owner | None:
    """Find the owner of a parameter when some modules were called."""
    return owner_of(net.get_parameter(path), [nn.ReLU(), net], {id(net.get_submodule(one)) for one in called})


@pytest.mark.parametrize(
    ("path", "called", "module", "is_called", "is_unused_choice"),
    [
        ("body.weight", (), "body", False, False),
        ("body.weight", ("", "body"), "body", True, False),
        ("body.weight", ("", "experts.0"), "body", False, False),
        ("experts.1.0.weight", ("",), "experts.1.0", False, False),
        ("experts.1.0.weight", ("", "experts.0"), "experts.1.0", False, True),
        ("experts.1.0.bias", ("experts.2.0",), "experts.1.0", False, True),
        ("experts.1.0.weight", ("experts.1",), "experts.1.0", False, False),
        ("experts.1.0.weight", ("experts.0", "experts.1.0"), "experts.1.0", True, False),
        ("table.0", (), "table", True, False),
    ],
)
def test_the_module_that_holds_a_parameter(
    path: str, called: tuple[str, ...], module: str, *, is_called: bool, is_unused_choice: bool
) -> None:
    """Of a list of modules others may be called instead; a list of parameters is never called."""
    net = Net()

    assert owner(net, path, *called) == Owner(net.get_submodule(module), is_called, is_unused_choice)


def test_a_parameter_without_a_module_has_no_owner() -> None:
    """Nor has an equal one; modules that hold each other are looked at once."""
    net = Net()
    net.body.add_module("above", net)

    assert owner_of(nn.Parameter(torch.ones(2)), [net], set()) is None
    assert owner_of(net.body.weight, [], set()) is None
    assert owner(net, "body.weight", "body") == Owner(net.body, is_called=True, is_unused_choice=False)
