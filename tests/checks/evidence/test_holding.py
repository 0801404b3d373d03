"""What a variable holds when backward is called."""

import sys

import torch
from torch import nn

from gradinspect.checks.evidence.holding import holding
from gradinspect.checks.facts import Holds
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
