"""A backward through a graph that an earlier one freed: which one did, and where the new graph joins the old one."""

from collections.abc import Iterator, Sequence

from gradinspect.checks.facts.backward_calls import BackwardStarts, EarlierCall, StoredLine
from gradinspect.checks.findings import Finding, Place, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.graphs.carried_state import (
    Join,
    carried_remedy,
    carrier_of,
    is_carried,
    joins,
    joins_in_time,
    made_under_name,
)
from gradinspect.graph import THREAD_SPAN, Frame, Graph, Node, frame_of
from gradinspect.units import format_count

MAX_LINES = 3

FREED = Rule(
    code="GI401",
    explains=("GI801",),
    title="backward through a freed graph",
    summary="A backward needs nodes whose saved tensors an earlier backward has freed.",
    explanation="Backward frees what the nodes saved as it goes, so it can go through a graph once: 'Trying to "
    "backward through the graph a second time'. Often only a part of the graph is old: a hidden state, a running "
    "sum or a shared trunk was computed before the earlier backward, and the new loss depends on it. gradinspect "
    "names the backward that freed it, and the line where the new graph joins the old one. retain_graph=True would "
    "silence the error, but where the history is not wanted, it makes every step slower than the last.",
    change="""\
  import torch
  from torch import nn

  cell = nn.Linear(4, 4)
  h = torch.zeros(4)
  for _ in range(3):
-     h = torch.tanh(cell(torch.randn(4)) + h)  # reads h of the last step
+     h = torch.tanh(cell(torch.randn(4)) + h.detach())
      h.sum().backward()
""",
    remedy="Use h.detach() in the next step. For two losses of one graph, call backward once on their sum.",
)


def second_backward_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find out whether backward will fail because saved tensors are freed, and how to fix it."""
    graph, backward, calls = starts.graph, starts.backward, starts.freed_by
    has_freed = {number for number, node in enumerate(graph.nodes) for value in node.saved if value.status == "freed"}
    freed = [graph.nodes[number] for number in sorted(has_freed)]
    if not freed:
        return
    owners = [call for call in calls if any(node.identity in call.nodes for node in freed)]
    call = owners[-1] if owners else None
    old = set() if call is None else {n for n, node in enumerate(graph.nodes) if node.identity in call.nodes}
    later = [] if call is None else _since(graph, call)
    join = next(iter(later or joins(graph, old)), None)
    made = frame_of(graph, graph.nodes[0] if join is None else join.old)
    places = [*place_of("made" if join is None else "old", made)]
    kept = None
    if join is not None:
        places += _new_lines(graph, join, later)
        kept = carrier_of(graph, join, backward, starts.stored_at)
        known = [(place.file, place.line) for place in places]
        is_new = kept is not None and (kept.frame.file, kept.frame.line) not in known
        places += place_of("kept", kept.frame if kept is not None and is_new else None)
    if call is not None:
        places += place_of("freed", call.frame)
    yield FREED.finding(
        text=_why(graph, call, old, join, freed, kept),
        places=(*places, *place_of("backward", backward)),
        remedy=_remedy(starts, call, later) if join is not None else _again(graph, call, backward),
        subjects=tuple(dict.fromkeys(node.name for node in freed)),
    )


def _since(graph: Graph, call: EarlierCall) -> list[Join]:
    """List where nodes made since an earlier call read older ones.

    Empty if the call went through none of these, and no iteration handed them on: then this loss was known before the
    call, too, and has been weighted since.
    """
    found = joins_in_time(graph, call)
    is_beside = not any(join.old.identity in call.nodes or is_carried(graph, join, call) for join in found)
    return [] if is_beside else found


JUDGE = Judge(BackwardStarts, second_backward_findings)


def _new_lines(graph: Graph, join: Join, later: Sequence[Join]) -> Iterator[Place]:
    """Yield the lines that read the old part, of the join that is described first, and of some others."""
    lines = {line_of(frame): frame for one in (join, *later) if (frame := frame_of(graph, one.new)) is not None}
    for frame in list(lines.values())[:MAX_LINES]:
        yield from place_of("new", frame)


def _why(  # what the sentence names
    graph: Graph,
    call: EarlierCall | None,
    old: set[int],
    join: Join | None,
    freed: Sequence[Node],
    kept: StoredLine | None,
) -> str:
    """Name the value that leads into the old graph, and then what was freed there."""
    if call is None:
        return f"What {freed[0].name} saved has been freed, by a backward before the observed ones."
    made = sum(node.leaf is None for node in graph.nodes)
    by = f"{call.name} ({line_of(call.frame)})"
    lost = f"{len(freed):,} nodes have lost their" if len(freed) > 1 else f"{freed[0].name} has lost its"
    if join is None:
        nodes = format_count(made, "node")
        return f"{by} freed the whole graph, so this backward will fail. (It has {nodes}: {lost} saved tensors.)"
    value = f"What {line_of(frame_of(graph, join.old))} made"
    if kept is not None:
        value = f"{kept.name} ({line_of(kept.frame)})"
    is_old = is_carried(graph, join, call)
    brings = "brings the graph of an earlier iteration into this one" if is_old else "is part of two graphs"
    part = f"{len(old):,} of {format_count(made, 'node')}, up to where {join.new.name} reads what {join.old.name} made"
    return f"{value} {brings}, and {by} has freed that, so this backward will fail. ({part}; {lost} saved tensors.)"


def _again(graph: Graph, call: EarlierCall | None, backward: Frame | None) -> str:
    """Advise on a graph that is old as a whole."""
    made, here = line_of(frame_of(graph, graph.nodes[0])), line_of(backward)
    if call is None:
        return f"Compute {made} again before {here}."
    again = f"Compute {made}, and what it reads, again before {here}"
    if call.frame == backward:
        return f"{again}, inside the loop: a graph can be used for one backward."
    return f"{again}, or call backward once on the sum of all losses of that graph."


def _remedy(starts: BackwardStarts, call: EarlierCall | None, later: Sequence[Join]) -> str:
    """Advise on a graph that is old in part.

    Args:
        starts: The graph, and what is known of the program.
        call: The backward that freed the old part.
        later: Where nodes made since then read the old part; empty if the loss itself was made before.
    """
    graph, backward = starts.graph, starts.backward
    if call is None:
        return _again(graph, call, backward)
    if not later:
        other = graph.roots[0].name
        total = f"({call.root} + {other})" if call.root and other and call.root != other else "the sum of both"
        which = f"{total}.backward() once" if total.startswith("(") else f"backward() once on {total}"
        if line_of(call.frame) == line_of(backward):
            return (
                f"All losses are known before {line_of(backward)}, and share a part: add them up in the loop, and call "
                "backward() once on the sum, after it."
            )
        return f"Both losses are known before {line_of(call.frame)}: call {which} instead of both calls."
    carried = [join for join in later if is_carried(graph, join, call)]
    if carried:
        return carried_remedy(graph, carried, backward, starts.holds, starts.stored_at)
    (old, detached), new = made_under_name(graph, later[0]), line_of(frame_of(graph, later[0].new))
    root = graph.roots[0].name
    if call.root is not None and root is not None and later[0].old.identity == _root_of(call):
        return f"{root} contains {call.root}: call {root}.backward() only, without {call.root}.backward() before it."
    if old is not None and old.function.endswith("__init__"):
        return _once(old, new)
    if line_of(call.frame) == line_of(backward):
        return (
            f"Compute {line_of(old)} again in each iteration, before {new}; if no gradient needs to flow through it, "
            f"use {detached} there instead."
        )
    first = call.root or "the loss"
    return (
        f"If {first} at {line_of(call.frame)} is not meant to train what {line_of(old)} reads, compute {first} from "
        f"{detached}. Otherwise compute {line_of(old)} again before {new}, or both losses before a single backward() "
        "on their sum."
    )


def _once(old: Frame, new: str) -> str:
    """Advise on what a constructor computes from parameters: the result of an operator is no parameter."""
    if "Parameter(" in old.code:
        return (
            f"Compute the value first, and make an nn.Parameter of the result, at {line_of(old)}: "
            "nn.Parameter(value * 0.02), not nn.Parameter(value) * 0.02."
        )
    return (
        f"Compute {line_of(old)} for each call, in forward or in the method that returns it, before {new}: the "
        "constructor runs only once."
    )


def _root_of(call: EarlierCall) -> int | None:
    """Return the identity of the node that a call began at: the last one, if the recorded thread made it."""
    return max((number for number in call.nodes if number < THREAD_SPAN), default=None)
