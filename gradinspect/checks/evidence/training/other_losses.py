"""Gradients that a backward call for another optimizer has left, and that a step applies along with its own.

NOTE [Left by another loss]
The generator's backward goes through the discriminator, and the actor's through the critic: it leaves gradients there
that push the wrong way. They are to be cleared before the next backward of the discriminator itself. Several backward
calls before a step are usual, though: losses that are added up, optimizers that share a backward, a trunk that learns
from the losses of all heads. So a gradient counts as left by another loss if only other optimizers stepped after that
backward, if only this one steps after its own, which is on another line, and if what the others train comes before
what this one trains, so that their gradients had to pass through it.

NOTE [Left by a rival]
The discriminator's backward goes through the generator if the fake is not detached. Then the rival comes after what
this optimizer trains, as the heads of a trunk do. But its own backward goes through the rival again, and what it leaves
there is for nobody: no optimizer of the rival steps before the next round. A head has nothing of another one's loss.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gradinspect.graph import Graph

LEAST_STEPS = 2  # in a row
MAX_PARTS = 8


class GradientPart(NamedTuple):
    """What one backward call has added to a gradient."""

    time: int
    backward: int | None  # the frame of the call
    first_use: int | None  # the earliest node that reads the parameter; None: not known


@dataclass
class OtherLosses:
    """Tracks which backward calls each gradient consists of, and which optimizers stepped after each."""

    _parts: dict[int, list[GradientPart]] = field(default_factory=dict)  # by the id of the parameter
    _steps: dict[int, dict[int, int | None]] = field(default_factory=dict)  # time -> optimizer -> its earliest use
    _in_a_row: dict[int, int] = field(default_factory=dict)  # by the id of the optimizer
    _applied: dict[int, frozenset[int]] = field(default_factory=dict)  # optimizer -> the parameters of its last step
    _rounds: dict[int, int] = field(default_factory=dict)  # optimizer -> time of its own backward, beside a rival's

    def reached(self, parameter: int, part: GradientPart) -> None:
        """Note that backward adds to a gradient."""
        parts = self._parts.setdefault(parameter, [])
        parts.append(part)
        del parts[:-MAX_PARTS]

    def cleared(self, parameter: int) -> None:
        """Note that a gradient was cleared, or applied."""
        self._parts.pop(parameter, None)

    def unobserved(self) -> None:
        """Note a backward call that is not observed: it may have been for any optimizer."""
        self._parts.clear()

    def step(self, optimizer: int, parameters: Collection[int]) -> GradientPart | None:
        """Note that an optimizer is about to step, and return what another loss has left in all of its gradients."""
        held = [parts for key in parameters if (parts := self._parts.get(key))]
        left = (self._left(optimizer, held) or self._left_by_rival(optimizer, held)) if held else None
        self._applied[optimizer] = frozenset(parameters)
        for parts in held:
            for part in parts:
                steps = self._steps.setdefault(part.time, {})
                steps[optimizer] = _earlier(steps.get(optimizer, part.first_use), part.first_use)
        self._in_a_row[optimizer] = 0 if left is None else self._in_a_row.get(optimizer, 0) + 1
        return left

    def is_habit(self, optimizer: int) -> bool:
        """Return whether the last steps of an optimizer had gradients of another loss."""
        return self._in_a_row.get(optimizer, 0) >= LEAST_STEPS

    def waits(self) -> bool:
        """Return whether the next step of an optimizer may show it."""
        return any(0 < count < LEAST_STEPS for count in self._in_a_row.values())

    def _left(self, optimizer: int, held: Sequence[Sequence[GradientPart]]) -> GradientPart | None:
        last = held[0][-1]
        is_own = not self._steps.get(last.time)
        for part in held[0][:-1] if is_own else ():
            others = self._steps.get(part.time, {})
            is_in_all = all(any(one.time == part.time for one in parts) for parts in held)
            if others and optimizer not in others and part.backward != last.backward and is_in_all:
                own = [one.first_use for parts in held for one in parts if one.time == part.time]
                if all(_is_before(other, one) for other in others.values() for one in own):
                    return part
        return None

    def _left_by_rival(self, optimizer: int, held: Sequence[Sequence[GradientPart]]) -> GradientPart | None:
        """Return what a backward has left that also goes through this one's parameters. NOTE [Left by a rival]."""
        last = max((parts[-1] for parts in held), key=lambda part: part.time)
        before = self._rounds.pop(optimizer, None)
        if self._steps.get(last.time) or not self._steps.get(before or 0, {}).keys() <= {optimizer}:
            return None
        for part in {part.time: part for parts in held for part in parts}.values():
            others = self._steps.get(part.time, {})
            if optimizer in others or part.backward == last.backward:
                continue
            if any(self._has_part(key, last.time) for other in others for key in self._applied.get(other, ())):
                self._rounds[optimizer] = last.time
                return part
        return None

    def _has_part(self, parameter: int, time: int) -> bool:
        return any(part.time == time for part in self._parts.get(parameter, ()))


def first_uses(graph: Graph) -> Mapping[int, int]:
    """Return for each leaf the sequence number of the earliest node that reads it.

    Left out are leaves that a node of another thread reads, or of an unknown one: that may have been earlier.
    """
    found: dict[int, int] = {}
    nodes = graph.nodes
    elsewhere: set[int] = set()
    for node in nodes:
        if node.sequence_nr is None or node.thread:
            elsewhere.update(edge.next_node for edge in node.next_edges if edge is not None)
            continue
        for edge in node.next_edges:
            if edge is not None and nodes[edge.next_node].leaf is not None:
                found[edge.next_node] = min(found.get(edge.next_node, node.sequence_nr), node.sequence_nr)
    return {leaf: first for leaf, first in found.items() if leaf not in elsewhere} if elsewhere else found


def _earlier(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def _is_before(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other
