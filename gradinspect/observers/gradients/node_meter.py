"""Measure the gradients that reach and leave one node, by hooks that the engine runs before and after it.

NOTE [Gradients that are passed on]
An addition passes on the same tensor that it got. If it leads to only one node, what reaches that node is already
known. Both are seen at the same time, after the node has run, because the node's code may write into its gradient.
"""

from itertools import count
from time import perf_counter
from typing import TypeAlias

import torch
from msgspec import Struct

from gradinspect.graph import Edge
from gradinspect.observers.gradients.figures import Figures, Measurements
from gradinspect.recording.values.magnitudes import PIECE
from gradinspect.torch_api.dynamo import uncompiled

Gradients: TypeAlias = tuple[torch.Tensor | None, ...]
Measured: TypeAlias = tuple[Figures | None, ...]


class Shared:
    """What the meters of one backward call share."""

    __slots__ = ("measurements", "order", "passed_on")

    def __init__(self, piece: int = PIECE) -> None:
        """Start empty.

        Args:
            piece: How many elements of a device's tensor are measured at a time.
        """
        self.measurements = Measurements(piece)
        self.order = count()
        self.passed_on: dict[int, Measured] = {}  # node -> the gradient that it will get, if known


class Leaving(Struct, frozen=True, gc=False):
    """Where the gradients that leave a node are measured; alike for most nodes of one class."""

    here: tuple[int, ...]  # positions of the edges whose gradients are measured as they leave
    alone: tuple[int, ...]  # of those that alone lead to their next node: measured there, where they arrive
    permutes: bool  # whether the only next node gets the same elements in another order or shape
    passes: bool  # whether all that leaves is measured at next nodes, so that it may do without a hook


class NodeMeter(Struct, gc=False):
    """The measurements of one node. A missing one was taken at another node, of the same gradient.

    Its hooks run once for each of what may be a million nodes, so they measure everything in one go. It is itself the
    hook after the node: a bound method for each node would take as much memory again.
    """

    shared: Shared
    number: int  # of the node
    edges: tuple[Edge | None, ...]  # its own
    leaving: Leaving
    is_passed: bool = False  # without a hook: what reaches it is measured at the node before, or at those after it
    hands_on: bool = False  # without a hook: what reaches it leaves by each edge as it came
    places: tuple[int, ...] = ()  # positions of the edges to nodes without a hook
    passed: tuple["NodeMeter", ...] = ()  # those nodes
    order: int | None = None  # None: the node did not run
    incoming: Measured | None = None
    outgoing: Measured = ()  # one for each of `leaving.here`
    began: float | None = None  # None: its hook before was not run
    is_timed: bool = True  # False: its kernels run later than they are called, on a device that is not waited for
    seconds: float | None = None

    @uncompiled
    def before(self, incoming: Gradients) -> None:
        """Measure what has reached the node."""
        shared = self.shared
        self.order = next(shared.order)
        if not self.leaving.permutes:
            known = shared.passed_on.pop(self.number, None)
            self.incoming = shared.measurements.measure(incoming) if known is None else known
        self.began = perf_counter()

    @uncompiled
    def __call__(self, outgoing: Gradients, incoming: Gradients) -> None:  # noqa: C901, PLR0912  # it runs for each node
        """Measure what leaves the node that has run, and what reached it if `before` did not."""
        shared, leaving = self.shared, self.leaving
        reached: Gradients = ()
        if self.began is None:
            self.order = next(shared.order)
            if not leaving.permutes:
                self.incoming = shared.passed_on.pop(self.number, None)
                reached = incoming if self.incoming is None else ()
        else:
            self.seconds = max(0.0, perf_counter() - self.began) if self.is_timed else None
        here = leaving.here + self.places
        gradients = (*reached, *[outgoing[place] for place in here]) if here else reached
        if gradients:
            measured = shared.measurements.measure(gradients)
            if reached:
                self.incoming, measured = measured[: len(reached)], measured[len(reached) :]
            self.outgoing = measured[: len(leaving.here)]  # of most nodes none: their own tuple would be kept
            if self.passed:
                self._pass_on(measured[len(leaving.here) :])
        if self.began is None and len(incoming) == 1 and self.incoming is not None:
            came = incoming[0]
            for place in leaving.alone:
                if outgoing[place] is came and came is not None:
                    shared.passed_on[self.edges[place].next_node] = self.incoming  # type: ignore[union-attr]  # alone

    def _pass_on(self, measured: Measured) -> None:
        """Store what has reached the nodes that have no hook."""
        for after, one in zip(self.passed, measured, strict=True):
            after.order = self.order
            after.incoming = (one,)
