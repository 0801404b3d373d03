"""Shared by tests of stepping: a listener, and one call of backward that is stepped through."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from gradinspect.analyses.gradients.stepping import Step, SteppingOutcome
from gradinspect.graph import Graph
from gradinspect.observers.stepping.lockstep import LiveStep, Lockstep
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import OutputTensor


class Silent:
    """Stores every step and prints nothing."""

    def __init__(self) -> None:
        """Start empty."""
        self.steps: list[Step] = []

    def begin(self, graph: Graph, start: str, with_our_stdio: Callable[[], AbstractContextManager[None]]) -> bool:
        """Go on."""
        return True

    def ran(self, live: LiveStep) -> bool:
        """Store the step."""
        self.steps.append(live.step)
        return True


def stepped(
    outputs: Sequence[OutputTensor], gradients: Sequence[torch.Tensor], listener: Silent, **options: Any
) -> SteppingOutcome:
    """Step through one backward call."""

    def leave(_steps: Lockstep) -> None:
        raise AssertionError

    graph = record_graph(list(outputs), Moment(source="test"))
    steps = Lockstep(graph, outputs, gradients, listener, leave)
    torch.autograd.backward([output.value for output in outputs], gradients, retain_graph=True, **options)
    if steps.problem is not None:
        raise steps.problem
    return steps.finish()


def leaves_in(value: Any) -> list[torch.Tensor]:
    """List the leaves among an operator's arguments."""
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad and value.is_leaf else []
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves_in(item)]
    return []


def forget(leaves: list[torch.Tensor]) -> None:
    """Remove the gradients."""
    for leaf in leaves:
        leaf.grad = None
