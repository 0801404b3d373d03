"""History that is kept from one backward to the next: told from two rounds of the same loop.

NOTE [Rounds]
Two calls on the same line are rounds of a loop if the later one goes through nodes that were made after the earlier
one began. What the earlier one went through is history then. The graph grows if a line of the program reads what the
same line made in the round before; a trunk that several losses share, or what was computed before the loop, is read by
other lines.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from gradinspect.checks.findings import Finding, Place, line_of, place_of
from gradinspect.checks.rules.second_backward import UsedCall
from gradinspect.graph import Frame, Graph, Node, Record, frame_of
from gradinspect.units import format_count

MAX_STORES = 2  # lines that are shown


class KeptHistory(Record, frozen=True, kw_only=True):
    """Something that keeps the graphs of earlier rounds alive."""

    held_by: Literal["variable", "gradient"]
    name: str = ""  # "losses[*]"
    num_tensors: int
    num_rounds: int  # whose graphs it keeps
    stores: tuple[Frame, ...] = ()  # the lines that store under this name
    adds: bool = False  # they add to what is there, rather than replace it


def earlier_rounds(graph: Graph, calls: Sequence[UsedCall], backward: Frame | None) -> list[UsedCall]:
    """List the earlier rounds of the loop that this call is in. NOTE [Rounds]."""
    newest = max((node.sequence_nr for node in graph.nodes if node.sequence_nr is not None), default=-1)
    return [
        call
        for call in calls
        if backward is not None and line_of(call.frame) == line_of(backward) and newest >= call.clock
    ]


def growing_findings(
    graph: Graph, rounds: Sequence[UsedCall], kept: Sequence[KeptHistory], backward: Frame | None
) -> Iterator[Finding]:
    """Find what makes each round leave more behind than the one before."""
    join = None if any(_is_freed(node) for node in graph.nodes) else _join(graph, rounds)
    if join is not None:
        yield _joined(graph, *join, backward)
    for holder in kept:
        if holder.held_by == "gradient":
            yield _gradient(holder, rounds[-1].frame, backward)
        elif holder.adds or holder.num_rounds > 1:
            yield _held(holder, backward)


def _is_freed(node: Node) -> bool:
    return any(value.status == "freed" for value in node.saved)


def _join(graph: Graph, rounds: Sequence[UsedCall]) -> tuple[UsedCall, Node, Node] | None:
    """Find the round before, and a new node that reads an old one where its own line made an old one too."""
    for call in reversed(rounds):
        old = {number for number, node in enumerate(graph.nodes) if node.sequence_nr in call.nodes}
        lines = {graph.nodes[number].frame for number in old} - {None}
        for node in graph.nodes:
            if node.sequence_nr is None or node.sequence_nr < call.clock or node.frame not in lines:
                continue
            for edge in node.next_edges:
                if edge is not None and edge.next_node in old:
                    return call, node, graph.nodes[edge.next_node]
    return None


def _joined(graph: Graph, call: UsedCall, new: Node, old: Node, backward: Frame | None) -> Finding:
    made, read = _frame(graph, old), _frame(graph, new)
    count = sum(node.sequence_nr in call.nodes for node in graph.nodes if node.sequence_nr is not None)
    return Finding(
        code="GI801",
        title="the graph grows from backward to backward",
        text=f"{new.name} reads what {old.name} made before {call.name}, which went through "
        f"{format_count(count, 'node')} of this graph. Each round makes backward longer and keeps more memory.",
        places=(*place_of("old", made), *place_of("new", read), *place_of("backward", backward)),
        remedy=f"Use detach() at {line_of(read)} on what comes from the round before, if gradients may end there.",
        subjects=(new.name,),
    )


def _held(holder: KeptHistory, backward: Frame | None) -> Finding:
    tensors = format_count(holder.num_tensors, "tensor")
    where = line_of(holder.stores[0] if holder.stores else None)
    return Finding(
        code="GI801",
        title="history is kept from backward to backward",
        text=f"{holder.name} holds {tensors} with the graph that an earlier backward went through. Each round adds "
        "another one, and with it what its graph keeps.",
        places=(*_stored(holder), *place_of("backward", backward)),
        remedy=f"Store a number or a tensor without history at {where}: item() or detach().",
        subjects=(holder.name,),
    )


def _gradient(holder: KeptHistory, earlier: Frame | None, backward: Frame | None) -> Finding:
    return Finding(
        code="GI801",
        title="gradients keep the graph that made them",
        text=f"{format_count(holder.num_tensors, 'gradient')} (.grad) of the round before carry a graph, as "
        "create_graph=True makes them, and this backward adds to them.",
        places=(*place_of("made", earlier), *place_of("backward", backward)),
        remedy="Set .grad to None before each backward (optimizer.zero_grad()), or use autograd.grad(), which stores "
        "nothing.",
    )


def _stored(holder: KeptHistory) -> tuple[Place, ...]:
    return tuple(place for frame in holder.stores[:MAX_STORES] for place in place_of("stored", frame))


def _frame(graph: Graph, node: Node) -> Frame | None:
    return frame_of(graph, node)
