"""A backward that meets what an earlier one has used up: who did, and where the new graph joins the old one."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.graph import Frame, Graph, Node, Record, frame_of
from gradinspect.units import format_count

_ASSIGNED = re.compile(r"^([\w.]+(?:, *[\w.]+)*) *[-+*/@]?= ")


class UsedCall(Record, frozen=True, kw_only=True):
    """A backward call, and what it went through."""

    name: str  # "backward #1"
    frame: Frame | None
    root: str | None  # the variable it began at
    nodes: frozenset[int]  # their numbers of creation
    clock: int  # the number that the next node got


class _Join(NamedTuple):
    """Where the new graph begins to be the old one; no new node where all of it is old."""

    new: Node | None
    old: Node


def second_backward_findings(graph: Graph, calls: Sequence[UsedCall], backward: Frame | None) -> Iterator[Finding]:
    """Find out whether backward will fail for want of what is freed, and what would mend it."""
    freed = [node for node in graph.nodes if any(value.status == "freed" for value in node.saved)]
    if not freed:
        return
    owners = [call for call in calls if any(node.sequence_nr in call.nodes for node in freed)]
    call = owners[-1] if owners else None
    old = set() if call is None else {n for n, node in enumerate(graph.nodes) if node.sequence_nr in call.nodes}
    join = _join(graph, old) or _Join(None, freed[0])
    made = _frame(graph, join.old if join.new is not None else graph.nodes[0])
    places = [*place_of("old" if join.new is not None else "made", made)]
    if join.new is not None:
        places += place_of("new", _frame(graph, join.new))
    if call is not None:
        places += place_of("used", call.frame)
    yield Finding(
        code="GI401",
        title="backward meets what an earlier backward has used up",
        text=_why(graph, call, old, join, freed),
        places=(*places, *place_of("backward", backward)),
        remedy=_remedy(graph, call, join, backward),
        subjects=tuple(dict.fromkeys(node.name for node in freed)),
    )


def _join(graph: Graph, old: set[int]) -> _Join | None:
    """Find the latest node that is new and reads what an old one made."""
    for number, node in enumerate(graph.nodes):
        if number in old or node.leaf is not None:
            continue
        for edge in node.next_edges:
            if edge is not None and edge.next_node in old:
                return _Join(node, graph.nodes[edge.next_node])
    return None


def _why(graph: Graph, call: UsedCall | None, old: set[int], join: _Join, freed: Sequence[Node]) -> str:
    if call is None:
        return f"What {freed[0].name} saved is freed: a backward before those that were watched went through it."
    made = sum(node.leaf is None for node in graph.nodes)
    by = f"{call.name} ({line_of(call.frame)})"
    end = f"{format_count(len(freed), 'node')} no longer have what they saved, so torch will refuse this backward."
    end = end.replace("1 node no longer have what they saved", f"{freed[0].name} no longer has what it saved")
    if join.new is None:
        return f"The whole graph, {format_count(made, 'node')}, was used up by {by}. {end}"
    how = f"{join.new.name} reads what {join.old.name} made"
    return f"{len(old):,} of {format_count(made, 'node')} were used up by {by}; the new graph joins where {how}. {end}"


def _remedy(graph: Graph, call: UsedCall | None, join: _Join, backward: Frame | None) -> str:
    made, here = line_of(_frame(graph, graph.nodes[0])), line_of(backward)
    if call is None:
        return f"Compute {made} again before {here}."
    if join.new is None:
        again = f"Compute {made}, and what it reads, again before {here}"
        if call.frame == backward:
            return f"{again}, inside the loop: a graph serves one backward."
        return f"{again}, or add up all losses of that graph and call backward once."
    if (join.new.sequence_nr or 0) < call.clock:
        names = f"({call.root} + {graph.roots[0].name})" if call.root and graph.roots[0].name else "their sum"
        return (
            f"Both losses are there before {line_of(call.frame)}: call {names}.backward() once, in place of both calls."
        )
    old, new = _frame(graph, join.old), _frame(graph, join.new)
    assigned = None if old is None else _ASSIGNED.match(old.code)
    what = f"what {line_of(old)} made" if assigned is None else assigned[1]
    how = f"{what}.detach()" if assigned is not None and "," not in what else f"detach() of {what}"
    if old == new:
        return f"Use {how} at {line_of(new)}: each backward then ends where the one before it began."
    return (
        f"Use {how} at {line_of(new)} if gradients may end there; if not, compute {line_of(old)} again before "
        f"{line_of(new)}."
    )


def _frame(graph: Graph, node: Node) -> Frame | None:
    return frame_of(graph, node)
