"""Facts that observed backward calls offer to the rules; a rule picks one with a `Judge`.

NOTE [Iterations]
Two calls on the same line are iterations of a loop if the later one goes through nodes that were made after the earlier
one began. What the earlier one went through is then history. The graph grows if a line of the program reads what the
same line made in the previous iteration; a trunk that several losses share, or what was computed before the loop, is
read by other lines.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple, TypeAlias

from msgspec import field

from gradinspect.analyses.gradients.observed import GradientNote
from gradinspect.checks.facts.broadcasts import GrownOperator
from gradinspect.checks.facts.graphs import FirstNonfinite, KeptHistory, Mismatch, NonfiniteValue, Redrawn, StaleValue
from gradinspect.checks.findings import line_of
from gradinspect.graph import THREAD_SPAN, Frame, Graph, Node, Record

Holds: TypeAlias = Literal["tensor", "tuple", "list", "dict", "nested"]


class Held(NamedTuple):
    """What a variable of the program holds, and its name where backward is called: `model.h` for `self.h`."""

    kind: Holds
    name: str


class StoredLine(NamedTuple):
    """A line that keeps a variable for longer than its function runs."""

    name: str  # of the variable
    frame: Frame


HoldsOf: TypeAlias = Callable[[str], Held | None]  # None: not known
StoredAt: TypeAlias = Callable[[Frame], StoredLine | None]  # of what a line assigns
MadeAt: TypeAlias = Callable[[str], Frame | None]


class EarlierCall(Record, frozen=True, kw_only=True):
    """A backward call that began before, and what it went through."""

    name: str  # "backward #1"
    frame: Frame | None
    root: str | None  # the variable it began at
    nodes: AbstractSet[int]  # their identities
    clock: int  # the sequence number that the next node got, on the recorded thread
    clocks: dict[int, int] = field(default_factory=dict)  # the same, of each other thread that had made nodes


def was_made_since(node: Node, call: EarlierCall) -> bool:
    """Return whether a node was made since a call began; False if that is not known."""
    return node.identity is not None and was_numbered_since(node.identity, call)


def was_numbered_since(identity: int, call: EarlierCall) -> bool:
    """Return the same for the identity of a node."""
    thread, number = divmod(identity, THREAD_SPAN)
    return number >= (call.clocks.get(thread, 0) if thread else call.clock)


def was_made_before(node: Node, call: EarlierCall) -> bool:
    """Return whether a node was made before a call began; False if that is not known."""
    return node.sequence_nr is not None and not was_made_since(node, call)


def earlier_rounds(graph: Graph, calls: Sequence[EarlierCall], backward: Frame | None) -> list[EarlierCall]:
    """List the earlier iterations of the loop that this call is in. NOTE [Iterations]."""
    own = (node.sequence_nr for node in graph.nodes if node.sequence_nr is not None and not node.thread)
    newest, others = max(own, default=-1), [node for node in graph.nodes if node.thread]
    return [
        call
        for call in calls
        if call.name.startswith("backward")
        and backward is not None
        and line_of(call.frame) == line_of(backward)
        and (newest >= call.clock or any(was_made_since(node, call) for node in others))
    ]


class BackwardStarts(NamedTuple):
    """A graph that backward is about to go through."""

    graph: Graph
    backward: Frame | None = None  # the line of the call
    freed_by: Sequence[EarlierCall] = ()  # those that freed what they went through
    holds: HoldsOf = lambda _name: None
    made_at: MadeAt = lambda _class_name: None  # the one line that makes a module of a class
    stored_at: StoredAt = lambda _frame: None


class StaleGraph(NamedTuple):
    """A graph in which saved tensors were modified, and that backward is about to go through."""

    graph: Graph
    values: Sequence[StaleValue]
    backward: Frame | None = None
    calls: Sequence[EarlierCall] = ()  # those before
    holds: HoldsOf = lambda _name: None


class GrownGraph(NamedTuple):
    """A graph that backward is about to go through, and the operators whose broadcast looks accidental."""

    graph: Graph
    operators: Sequence[GrownOperator]
    backward: Frame | None = None


class LaterRound(NamedTuple):
    """The graph of an iteration, the earlier iterations of the same loop, and what keeps their graphs."""

    graph: Graph
    rounds: Sequence[EarlierCall]  # at least one
    kept: Sequence[KeptHistory] = ()
    backward: Frame | None = None
    holds: HoldsOf = lambda _name: None


class UnusedHistory(NamedTuple):
    """Graphs that are kept although no backward goes through them."""

    kept: Sequence[KeptHistory]
    backward: Frame | None = None


class NonfiniteLoss(NamedTuple):
    """A loss that is not finite, and where that began."""

    graph: Graph
    value: NonfiniteValue
    backward: Frame | None = None
    step: "LastStep | None" = None  # that changed the parameter, if it is one
    first: FirstNonfinite | None = None  # if it was seen


class LastStep(NamedTuple):
    """The step of an optimizer that was the last to change a parameter."""

    optimizer: str
    line: Frame | None
    created: Frame | None = None  # where the optimizer was made
    lost_eps: float | None = None  # what is 0 in the dtype of the parameter, where the step divides by it
    rate: float | None = None  # the largest learning rate, if that is known


class DivergingLoss(NamedTuple):
    """A loss that has grown from call to call until it was not finite, or nearly."""

    first: float
    last: float
    num_calls: int  # in which it has grown, the first one included
    step: LastStep | None  # of the parameters behind it
    backward: Frame | None


class UnequalRuns(NamedTuple):
    """A checkpointed block of which a backward call ran another recomputation than the forward pass."""

    difference: Mismatch | Redrawn
    backward: Frame | None = None


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
    method_of: Callable[[int], str] = lambda _node: ""  # the class of the optimizer that holds it, if that is torch's
    made_at: Callable[[int], Frame | None] = lambda _node: None  # the line that made its module
