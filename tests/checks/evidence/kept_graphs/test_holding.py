"""What a variable holds when backward is called."""

import sys

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.kept_graphs.holding import holding
from gradinspect.checks.facts.backward_calls import Holds
from gradinspect.recording.recorder import Recorder


class Memory(nn.Module):
    """Keeps a state."""

    def __init__(self) -> None:
        """Start with two tensors."""
        super().__init__()
        self.state = (torch.zeros(1), torch.zeros(1))
        self.register_buffer("mean", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the mean."""
        return x + self.mean


def held(*names: str) -> list[Holds | None]:
    """Look names up among some variables."""
    model = Memory()
    h, pair, nested = torch.zeros(1), [torch.zeros(1)], [(torch.zeros(1),)]
    named = {"h": h, "pair": pair[0], "nested": nested[0][0]}
    with Recorder() as recorder:
        model(h)
    holds = holding(sys._getframe(), recorder)
    found = [holds(name) for name in names] if named else []
    return [None if one is None else one.kind for one in found]


def test_variables_attributes_and_containers() -> None:
    """By name, as a line writes them; what is not there is not known."""
    assert held("h", "pair", "nested", "named") == ["tensor", "list", "nested", "dict"]
    assert held("self.state", "self.mean", "model.state", "missing") == ["tuple", "tensor", "tuple", None]


def test_an_attribute_has_the_name_under_which_backward_sees_it() -> None:
    """That of the variable that holds the module, or a part of it that can be written."""
    model, named = Memory(), torch.nn.ModuleDict({"inner": Memory(), "0": nn.ReLU()})
    listed = nn.Sequential(Memory())
    with Recorder() as recorder:
        listed(torch.zeros(1))
    holds = holding(sys._getframe(), recorder)
    found = [holds(name) for name in ("self.state", "model.state", "named.inner", "self.missing", "listed.training")]

    assert [one and (one.kind, one.name) for one in found] == [
        ("tuple", "model.state"), ("tuple", "model.state"), None, None, None,
    ]  # fmt: skip
    del model
    inner = holding(sys._getframe(), Recorder())("self.state")
    assert inner is not None
    assert inner.name == "named.inner.state"
    del named
    (here,) = [holding(sys._getframe(), recorder)("self.state")]
    assert here is not None
    assert here.name == "self.state"


def test_what_is_in_a_container_decides() -> None:
    """A list of a subclass, an empty one, and one with other things are taken apart by hand."""

    class Own(list[torch.Tensor]):
        pass

    x = torch.zeros(1)
    kinds: dict[str, Holds | None] = {
        "x": "tensor", "several": "tuple", "listed": "list", "by_name": "dict", "own": "nested", "empty": "nested",
        "mixed": "nested", "number": None,
    }  # fmt: skip
    values = [(x,), [x], {"a": x}, Own([x]), (), [x, 1], 3]
    several, listed, by_name, own, empty, mixed, number = values
    holds = holding(sys._getframe(), Recorder())

    assert {name: one and one.kind for name in kinds for one in [holds(name)]} == kinds
    assert values == [several, listed, by_name, own, empty, mixed, number]


def test_modules_of_a_large_model_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those after the first ones are not looked at."""
    monkeypatch.setattr("gradinspect.checks.evidence.kept_graphs.holding.MAX_PARTS", 2)
    model = nn.Sequential(*(nn.Identity() for _ in range(4)))
    recorder = Recorder()

    assert holding(sys._getframe(), recorder)("self.nowhere") is None
    assert len(model) == 4
    assert list(recorder.errors.notes()) == [
        "Not checked: 3 modules that may hold a state, after the first 2 of a model."
    ]
