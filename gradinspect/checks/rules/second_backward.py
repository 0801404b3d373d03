"""A backward through a graph that an earlier one freed: which one did, and where the new graph joins the old one."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts import BackwardStarts, EarlierCall
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule, RuleDoc
from gradinspect.graph import Frame, Graph, Node, frame_of
from gradinspect.units import format_count

_ASSIGNED = re.compile(r"^([\w.]+(?:, *[\w.]+)*) *[-+*/@]?= ")


FREED = Rule(
    doc=RuleDoc(
        code="GI401",
        title="backward through a freed graph",
        summary="A backward needs nodes whose saved tensors an earlier backward has freed.",
        explanation="Backward frees what the nodes saved as it goes, so it can go through a graph once: 'Trying to "
        "backward through the graph a second time'. Often only a part of the graph is old: a hidden state, a running "
        "sum or a shared trunk was computed before the earlier backward, and the new loss depends on it. gradinspect "
        "names the backward that freed it, and the line where the new graph joins the old one. retain_graph=True would "
        "silence the error, but where the history is not wanted, it makes every step slower than the last.",
        sample="""\
import torch
from torch import nn

cell = nn.Linear(4, 4)
h = torch.zeros(4)
for _ in range(3):
    h = torch.tanh(cell(torch.randn(4)) + h)  # reads h of the last step
    h.sum().backward()
""",
        fixed="""\
import torch
from torch import nn

cell = nn.Linear(4, 4)
h = torch.zeros(4)
for _ in range(3):
    h = torch.tanh(cell(torch.randn(4)) + h.detach())
    h.sum().backward()
""",
        remedy="Use h.detach() in the next step. For two losses of one graph, call backward once on their sum.",
    )
)


class _Join(NamedTuple):
    """Where the new graph begins to be the old one; no new node where all of it is old."""

    new: Node | None
    old: Node


def second_backward_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find out whether backward will fail because saved tensors are freed, and how to fix it."""
    graph, backward, calls = starts
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
        places += place_of("freed", call.frame)
    yield FREED.finding(
        text=_why(graph, call, old, join, freed),
        places=(*places, *place_of("backward", backward)),
        remedy=_remedy(graph, call, join, backward),
        subjects=tuple(dict.fromkeys(node.name for node in freed)),
    )


JUDGE = Judge(BackwardStarts, second_backward_findings)


def _join(graph: Graph, old: set[int]) -> _Join | None:
    """Find the latest node that is new and reads what an old one made."""
    for number, node in enumerate(graph.nodes):
        if number in old or node.leaf is not None:
            continue
        for edge in node.next_edges:
            if edge is not None and edge.next_node in old:
                return _Join(node, graph.nodes[edge.next_node])
    return None


def _why(graph: Graph, call: EarlierCall | None, old: set[int], join: _Join, freed: Sequence[Node]) -> str:
    if call is None:
        return f"What {freed[0].name} saved has been freed, by a backward before the observed ones."
    made = sum(node.leaf is None for node in graph.nodes)
    by = f"{call.name} ({line_of(call.frame)})"
    what = f"{len(freed):,} nodes have lost their" if len(freed) > 1 else f"{freed[0].name} has lost its"
    end = f"{what} saved tensors, so this backward will fail."
    if join.new is None:
        return f"{by} freed the whole graph ({format_count(made, 'node')}). {end}"
    how = f"{join.new.name} reads what {join.old.name} made"
    return f"{by} freed {len(old):,} of {format_count(made, 'node')}; the new graph joins them where {how}. {end}"


def _remedy(graph: Graph, call: EarlierCall | None, join: _Join, backward: Frame | None) -> str:
    made, here = line_of(_frame(graph, graph.nodes[0])), line_of(backward)
    if call is None:
        return f"Compute {made} again before {here}."
    if join.new is None:
        again = f"Compute {made}, and what it reads, again before {here}"
        if call.frame == backward:
            return f"{again}, inside the loop: a graph can be used for one backward."
        return f"{again}, or call backward once on the sum of all losses of that graph."
    if (join.new.sequence_nr or 0) < call.clock:
        names = f"({call.root} + {graph.roots[0].name})" if call.root and graph.roots[0].name else "their sum"
        return (
            f"Both losses are known before {line_of(call.frame)}: call {names}.backward() once instead of both calls."
        )
    old, new = _frame(graph, join.old), _frame(graph, join.new)
    assigned = None if old is None else _ASSIGNED.match(old.code)
    what = f"what {line_of(old)} made" if assigned is None else assigned[1]
    how = f"{what}.detach()" if assigned is not None and "," not in what else f"detach() of {what}"
    if old == new:
        return f"Use {how} at {line_of(new)}, so that each backward stops where the previous one started."
    return (
        f"Use {how} at {line_of(new)} if gradients need not flow further; otherwise compute {line_of(old)} again "
        f"before {line_of(new)}."
    )


def _frame(graph: Graph, node: Node) -> Frame | None:
    return frame_of(graph, node)
