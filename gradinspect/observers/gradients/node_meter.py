"""Measure the gradients that reach and leave one node, by hooks that the engine runs before and after it.

NOTE [Gradients that are passed on]
An addition passes on the same tensor that it got. If it leads to only one node, what reaches that node is already
known. Both are seen at the same time, after the node has run, because the node's code may write into its gradient.
"""

import time
from collections.abc import Sequence
from itertools import count
from typing import Literal, TypeAlias

import torch

from gradinspect.observers.gradients.figures import Figures, Measurements
from gradinspect.torch_api.dynamo import uncompiled

Gradients: TypeAlias = tuple[torch.Tensor | None, ...]
Left: TypeAlias = Figures | Literal["next"] | None  # what left by one edge; "next": measured where it arrived


class Shared:
    """What the meters of one backward call share."""

    __slots__ = ("measurements", "order", "passed_on")

    def __init__(self) -> None:
        """Start empty."""
        self.measurements = Measurements()
        self.order = count()
        self.passed_on: dict[int, Figures | None] = {}  # the gradient that a node will get, if known


class NodeMeter:
    """The measurements of one node. A missing one was taken at another node, of the same gradient.

    Its hooks run once for each of what may be a million nodes, so they measure everything in one go.
    """

    __slots__ = (
        "_began", "_has_before", "_here", "_next_nodes", "_permutes", "_shared", "incoming", "number", "order",
        "outgoing", "seconds",
    )  # fmt: skip

    def __init__(self, shared: Shared, number: int, next_nodes: Sequence[int | None], *, permutes: bool) -> None:
        """Set up.

        Args:
            shared: What all meters share.
            number: The node.
            next_nodes: For each edge the node that gets its gradient from nowhere else; None: it is measured here.
            permutes: Whether the only next node gets the same elements in another order or shape.
        """
        self._shared = shared
        self.number = number
        self._next_nodes = next_nodes
        self._here = [place for place, next_node in enumerate(next_nodes) if next_node is None]
        self._permutes = permutes
        self._began = 0.0
        self._has_before = False
        self.order: int | None = None  # None: the node did not run
        self.incoming: tuple[Figures | None, ...] | None = None
        self.outgoing: list[Left] = ["next"] * len(next_nodes)
        self.seconds = 0.0

    @uncompiled
    def before(self, incoming: Gradients) -> None:
        """Measure what has reached the node."""
        self.order = next(self._shared.order)
        self._has_before = True
        if not self._permutes:
            self.incoming = self._known(incoming) or self._shared.measurements.measure(incoming)
        self._began = time.perf_counter()

    @uncompiled
    def after(  # noqa: C901, PLR0912  # it runs at each node, where one more call costs more than all branches
        self, outgoing: Gradients, incoming: Gradients
    ) -> None:
        """Measure what leaves the node, and what reached it if `before` did not."""
        shared = self._shared
        reached: Gradients = ()
        if self._has_before:
            self.seconds = max(0.0, time.perf_counter() - self._began)
        else:
            self.order = next(shared.order)
            if not self._permutes:
                self.incoming = self._known(incoming) if shared.passed_on else None
                reached = incoming if self.incoming is None else ()
        if self._here:
            edges = zip(outgoing, self._next_nodes, strict=False)
            leaving = [gradient for gradient, next_node in edges if next_node is None]
            measured = shared.measurements.measure((*reached, *leaving))
            for place, figures in zip(self._here, measured[len(reached) :], strict=False):
                self.outgoing[place] = figures
            if reached:
                self.incoming = measured[: len(reached)]
        elif reached:
            self.incoming = shared.measurements.measure(reached)
        if not self._has_before and self.incoming is not None and len(incoming) == 1:
            came = incoming[0]
            for gradient, next_node in zip(outgoing, self._next_nodes, strict=False):
                if gradient is came and next_node is not None and gradient is not None:
                    shared.passed_on[next_node] = self.incoming[0]

    def _known(self, incoming: Gradients) -> tuple[Figures | None] | None:
        """Return what reaches the node if the node before it passed that on."""
        passed_on = self._shared.passed_on
        return (passed_on.pop(self.number),) if len(incoming) == 1 and self.number in passed_on else None
