"""Graph history that is kept from one backward to the next, found by comparing iterations of the same loop."""

from collections.abc import Iterator, Sequence

from gradinspect.checks.facts.backward_calls import (
    EarlierCall,
    HoldsOf,
    LaterRound,
    UnusedHistory,
    was_made_before,
    was_made_since,
)
from gradinspect.checks.facts.graphs import KeptHistory
from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.graphs.carried_state import Join, carried_remedy, carrier_of, joins_in_time
from gradinspect.graph import Frame, Graph, Node, frame_of
from gradinspect.units import format_count

MAX_STORES = 2  # lines of one container that are shown
MAX_STORED = 4  # of all

GROWING = Rule(
    code="GI801",
    title="graph history is kept across iterations",
    summary="Each iteration keeps the graph of the previous one alive, so memory grows.",
    explanation="A tensor with a grad_fn keeps the whole graph behind it alive, and so does a list of such "
    "tensors, a running sum, a hidden state, or a gradient made with create_graph=True. In a loop, memory grows "
    "with every iteration, and where backward goes through the old part again, each step takes longer than the "
    "last. Two iterations reveal it: in the second, the graph of the first is still held by something that grows, "
    "or is joined on the line that made it. A list of outputs, as of validation without no_grad, is found when no "
    "backward has gone through their graphs two calls later. To see how much it grows: gradinspect memory train.py "
    "--iterations 5.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(4, 1)
  losses = []
  for _ in range(3):
      loss = model(torch.randn(8, 4)).square().mean()
      loss.backward()
-     losses.append(loss)  # keeps every graph
+     losses.append(loss.item())
""",
    remedy="Store loss.item(), or detach() what one iteration passes on to the next.",
)


def growing_findings(later: LaterRound) -> Iterator[Finding]:
    """Find what makes each iteration keep more than the previous one."""
    graph, rounds, kept, backward, holds = later
    join = None if any(_is_freed(node) for node in graph.nodes) else _join(graph, rounds)
    if join is not None:
        yield _joined(graph, *join, backward, holds)
    for holder in kept:
        if holder.held_by == "gradient":
            yield _gradient(holder, rounds[-1].frame, backward)
    held = [one for one in kept if one.held_by != "gradient" and (one.adds or one.num_rounds > 1)]
    for alike in _alike(held):
        yield _held(alike, backward)


def unused_findings(unused: UnusedHistory) -> Iterator[Finding]:
    """Report graphs that are kept although no backward goes through them."""
    for holders in _alike(unused.kept):
        names, lines = _names(holders), _lines_that_store(holders)
        what = f"what {lines} {_verb('store', holders)}" if lines else f"what {names} {_verb('hold', holders)}"
        yield GROWING.finding(
            text=f"{_hold(holders)} with a graph that no backward has gone through, although later graphs have been. "
            "Each keeps everything that its graph saved.",
            places=(*_stored(holders), *place_of("backward", unused.backward)),
            remedy=f"Compute under torch.no_grad() {what}, or store it without history: item() or detach().",
            subjects=[holder.name for holder in holders],
        )


GROWING_JUDGE = Judge(LaterRound, growing_findings)
UNUSED_JUDGE = Judge(UnusedHistory, unused_findings)


def _is_freed(node: Node) -> bool:
    for value in node.saved:  # noqa: SIM110  # it runs for each node: a generator would cost more
        if value.status == "freed":
            return True
    return False


def _join(graph: Graph, rounds: Sequence[EarlierCall]) -> tuple[EarlierCall, Node, Node] | None:
    """Find the previous iteration, and a new node that reads an old one where its own line made an old one too."""
    own = (node.sequence_nr for node in graph.nodes if node.sequence_nr is not None and not node.thread)
    oldest, others = min(own, default=0), [node for node in graph.nodes if node.thread]
    for call in reversed(rounds):
        if call.clock <= oldest and not any(was_made_before(node, call) for node in others):  # nearly always
            continue
        old = {number for number, node in enumerate(graph.nodes) if node.identity in call.nodes}
        if not old:
            continue
        lines = {graph.nodes[number].frame for number in old} - {None}
        for node in graph.nodes:
            if node.frame not in lines or not was_made_since(node, call):
                continue
            for edge in node.next_edges:
                if edge is not None and edge.next_node in old:
                    return call, node, graph.nodes[edge.next_node]
    return None


def _joined(  # everything about one join
    graph: Graph, call: EarlierCall, new: Node, old: Node, backward: Frame | None, holds: HoldsOf
) -> Finding:
    made, read = _frame(graph, old), _frame(graph, new)
    count = sum(node.identity in call.nodes for node in graph.nodes)
    kept = carrier_of(graph, Join(new, old), backward, lambda _frame: None)
    value = f"What {line_of(made)} made" if kept is None else f"{kept.name} ({line_of(kept.frame)})"
    return GROWING.finding(
        text=f"{value} brings the graph of an earlier iteration into this one, so each iteration makes backward slower "
        f"and keeps more memory. ({new.name} reads what {old.name} made before {call.name}, which went through "
        f"{format_count(count, 'node')} of this graph.)",
        places=(*place_of("old", made), *place_of("new", read), *place_of("backward", backward)),
        remedy=f"{carried_remedy(graph, joins_in_time(graph, call) or [Join(new, old)], backward, holds)} Ignore this "
        "if gradients must flow through all iterations.",
        subjects=(new.name,),
    )


def _alike(holders: Sequence[KeptHistory]) -> list[list[KeptHistory]]:
    """Split what keeps graphs by whether the lines that store or make them are known.

    The losses, scores and sums of one evaluation are one mistake, in as many places.
    """
    stored = [one for one in holders if one.stores]
    made = [one for one in holders if not one.stores and one.made is not None]
    unknown = [one for one in holders if not one.stores and one.made is None]
    return [_by_line(group) for group in (stored, made, unknown) if group]


def _by_line(holders: Sequence[KeptHistory]) -> list[KeptHistory]:
    def line(holder: KeptHistory) -> tuple[str, int]:
        frame = holder.stores[0] if holder.stores else holder.made
        return ("", 0) if frame is None else (frame.file, frame.line)

    return sorted(holders, key=line)


def _names(holders: Sequence[KeptHistory]) -> str:
    return listed(list(dict.fromkeys(holder.name for holder in holders)))


def _hold(holders: Sequence[KeptHistory]) -> str:
    tensors = format_count(sum(holder.num_tensors for holder in holders), "tensor")
    return f"{_names(holders)} {_verb('hold', holders)} {tensors}"


def _verb(verb: str, holders: Sequence[KeptHistory]) -> str:
    return f"{verb}s" if len(holders) == 1 else verb


def _lines_that_store(holders: Sequence[KeptHistory]) -> str:
    lines = list(dict.fromkeys(line_of(holder.stores[0]) for holder in holders if holder.stores))
    return listed(lines) if lines else ""


def _held(holders: Sequence[KeptHistory], backward: Frame | None) -> Finding:
    names, lines, made = _names(holders), _lines_that_store(holders), holders[0].made
    remedy = f"Store in {names} a tensor without history, by detach(), or by item() where only its number is read."
    if lines:
        remedy = f"At {lines}, store a tensor without history, by detach(), or by item() where only its number is read."
    elif made is not None:
        made_at = listed(list(dict.fromkeys(line_of(holder.made) for holder in holders)))
        remedy = f"{made_at} {_verb('make', holders)} what {names} {_verb('hold', holders)}: keep a number of it, or a "
        remedy += "tensor without history, by item() or detach()."
    return GROWING.finding(
        text=f"{_hold(holders)} with the graph of an earlier backward, along with everything that such a graph keeps.",
        places=(*_stored(holders), *place_of("backward", backward)),
        remedy=remedy,
        subjects=[holder.name for holder in holders],
    )


def _gradient(holder: KeptHistory, earlier: Frame | None, backward: Frame | None) -> Finding:
    return GROWING.finding(
        text=f"{format_count(holder.num_tensors, 'gradient')} (.grad) of the previous iteration keep the graph that "
        "create_graph=True made, and this backward adds to them.",
        places=(*place_of("made", earlier), *place_of("backward", backward)),
        remedy="Set .grad to None before each backward (optimizer.zero_grad()), or use autograd.grad(), which stores "
        "nothing.",
    )


def _stored(holders: Sequence[KeptHistory]) -> tuple[Place, ...]:
    most = MAX_STORES if len(holders) == 1 else 1
    stored = [frame for holder in holders for frame in holder.stores[:most]][:MAX_STORED]
    made = [] if stored else [holder.made for holder in holders[:MAX_STORED]]
    places = [*(place for frame in stored for place in place_of("stored", frame))]
    return tuple(dict.fromkeys((*places, *(place for frame in made for place in place_of("made", frame)))))


def _frame(graph: Graph, node: Node) -> Frame | None:
    return frame_of(graph, node)
