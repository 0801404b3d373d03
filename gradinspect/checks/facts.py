"""Facts that every observed backward call offers to the rules; a rule picks one with a `Judge`."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.analyses.gradients.observed import GradientNote
from gradinspect.graph import Frame, Graph, Record

Holds: TypeAlias = Literal["tensor", "tuple", "list", "dict", "nested"]


class Held(NamedTuple):
    """What a variable of the program holds, and its name where backward is called: `model.h` for `self.h`."""

    kind: Holds
    name: str


HoldsOf: TypeAlias = Callable[[str], Held | None]  # None: not known


class EarlierCall(Record, frozen=True, kw_only=True):
    """A backward call that began before, and what it went through."""

    name: str  # "backward #1"
    frame: Frame | None
    root: str | None  # the variable it began at
    nodes: frozenset[int]  # their sequence numbers
    clock: int  # the sequence number that the next node got


class BackwardStarts(NamedTuple):
    """A graph that backward is about to go through."""

    graph: Graph
    backward: Frame | None = None  # the line of the call
    freed_by: Sequence[EarlierCall] = ()  # those that freed what they went through
    holds: HoldsOf = lambda _name: None


class LeafValues(NamedTuple):
    """How the program gave a leaf its values, before any optimizer."""

    op: str  # "fill"
    frame: Frame | None
    highest: Callable[[], float]  # of the values that it has; slow to find out


class BackwardEnded(NamedTuple):
    """A graph with the gradients that flowed through it, unless a finding from before explains them."""

    graph: Graph
    notes: Sequence[GradientNote]  # what is odd about the gradients
    backward: Frame | None = None
    is_scaling: Callable[[], bool] = lambda: False  # whether a GradScaler is at work; slow to find out
    values_of: Callable[[int], LeafValues | None] = lambda _node: None  # of the leaf of a node
