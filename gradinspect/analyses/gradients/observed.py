"""The gradient that reached each node and parameter, and where it vanished, exploded or became non-finite."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise, takewhile
from math import hypot, isfinite, log, prod
from typing import Literal, TypeAlias

from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.errors import GradInspectError
from gradinspect.graph import (
    Gradients,
    GradientStats,
    Graph,
    Measured,
    Node,
    NodeGradients,
    Record,
    frame_of,
    module_name,
    stats_of,
)
from gradinspect.units import format_count

GradientNoteKind: TypeAlias = Literal["loss", "non-finite", "killed", "vanishing", "exploding", "missing"]
FAR = 1e3  # ratio of the norms at both ends of a chain of modules
AT_LEAVES = "Under compiled autograd, gradients are measured at parameters alone (--eager: at all nodes)."
MIN_CHAIN = 3  # modules or calls


class ParameterRow(Record, frozen=True, kw_only=True):
    """The gradient that was accumulated into one leaf."""

    node: int
    name: str
    stats: GradientStats | None  # None: no gradient, or one that was not measured
    weight_norm: float | None
    num_added: int  # edges into it
    update_norm: float | None = None  # of the change made by the optimizer's next step
    unmeasured: str | None = None  # why there are no statistics of a gradient that did arrive

    @property
    def is_missing(self) -> bool:
        """Whether there was no gradient. NOTE [Unmeasured is not missing] in `graph`."""
        return self.stats is None and self.unmeasured is None

    @property
    def ratio(self) -> float | None:
        """Norm of the gradient over norm of the weight."""
        if self.stats is None or not self.weight_norm:
            return None
        return self.stats.norm / self.weight_norm

    @property
    def update_ratio(self) -> float | None:
        """Norm of the optimizer's update over norm of the weight."""
        if self.update_norm is None or not self.weight_norm:
            return None
        return self.update_norm / self.weight_norm


class FlowRow(Record, frozen=True, kw_only=True):
    """The gradient at the output of one module call, or of nodes outside any module."""

    path: str
    class_name: str
    call: int
    depth: int  # of how many calls with a row it is inside
    node: int  # its last node of the forward pass
    stats: GradientStats


class Fall(Record, frozen=True, kw_only=True):
    """How much smaller the gradient is at the module farthest from the loss than at the closest."""

    closest: FlowRow
    farthest: FlowRow
    factor: float  # above 1: it falls


class GradientNote(Record, frozen=True, kw_only=True):
    """Where a gradient went wrong, and the parameters that this concerns."""

    kind: GradientNoteKind
    text: str
    node: int | None = None
    parameters: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()  # before the node: it was one of these, not the node


def gradients_of(graph: Graph) -> Gradients:
    """Return the gradients.

    Raises:
        GradInspectError: The graph was recorded without letting backward run.
    """
    if graph.gradients is None:
        raise GradInspectError(
            f"The graph of '{graph.source}' was recorded without gradients.",
            "Give a script to run, or export the capture with --gradients.",
        )
    return graph.gradients


def arriving_norm(ran: NodeGradients) -> float | None:
    """Return the norm of all gradients that reached a node; None if there were none, or one was not measured."""
    return norm_of_all(ran.incoming)


def norm_of_all(gradients: Sequence[Measured]) -> float | None:
    """Return the norm of several gradients; None if there are none, or one was not measured."""
    if len(gradients) == 1:  # nearly always
        only = gradients[0]
        return only.norm if isinstance(only, GradientStats) else None
    norms = [stats.norm for stats in known(gradients)]
    return hypot(*norms) if norms and not is_any_unmeasured(gradients) else None


def known(gradients: Sequence[Measured]) -> list[GradientStats]:
    """Return the statistics of those that were measured."""
    return [stats for stats in gradients if isinstance(stats, GradientStats)]


def is_any_unmeasured(gradients: Sequence[Measured]) -> bool:
    """Return whether one arrived that was not measured."""
    return any(isinstance(one, str) for one in gradients)


def nodes_by_order(graph: Graph) -> list[NodeGradients]:
    """Return the nodes in the order in which backward ran them."""
    return sorted(gradients_of(graph).nodes, key=lambda node: node.order)


def unmeasured_notes(graph: Graph) -> tuple[str, ...]:
    """Say in sentences what was not measured, and why: never a finding."""
    reasons: Counter[str] = Counter()
    for ran in gradients_of(graph).nodes:
        unmeasured = [one for one in (*ran.incoming, *ran.outgoing) if isinstance(one, str)]
        if unmeasured:
            reasons.update(set(unmeasured))
    texts = (
        f"Gradients at {format_count(number, 'node')} were not measured: {reason.rstrip('.')}."
        for reason, number in reasons.most_common()
    )
    found = gradients_of(graph)
    return (*texts, *([AT_LEAVES] if found.at_leaves_only else []), *found.notes)


def compiled_notes(graph: Graph) -> tuple[str, ...]:
    """Say that what is inside compiled nodes has no gradients of its own, and what to do about it."""
    number = sum(node.kind == "compiled" for node in graph.nodes)
    note = f"Not measured: inside {format_count(number, 'compiled node')}. --eager compiles nothing."
    return (note,) if number else ()


def parameter_rows(graph: Graph) -> tuple[ParameterRow, ...]:
    """List the leaves, those closest to the loss first."""
    found = gradients_of(graph)
    leaves = {number: node.leaf for number, node in enumerate(graph.nodes) if node.leaf is not None}
    by_node = {node.node: node for node in found.nodes if node.node in leaves}
    into = (edge.next_node for node in graph.nodes for edge in node.next_edges if edge is not None)
    added = Counter(number for number in into if number in leaves)
    passed_on = _passed_on(graph, leaves.keys() - by_node.keys())
    rows = []
    for node_id in (*added, *sorted(leaves.keys() - added.keys())):
        ran = by_node.get(node_id)
        measured = _only(passed_on.get(node_id, [])) if ran is None else _first(ran.incoming)
        rows.append(
            ParameterRow(
                node=node_id,
                name=leaves[node_id].name or f"#{node_id}",
                stats=stats_of(measured),
                unmeasured=measured if isinstance(measured, str) else None,
                weight_norm=found.weight_norms.get(node_id),
                num_added=added[node_id],
                update_norm=found.update_norms.get(node_id),
            )
        )
    return tuple(rows)


def _passed_on(graph: Graph, leaves: AbstractSet[int]) -> dict[int, list[Measured]]:
    """Collect the gradients sent to leaves that did not run: autograd.grad returns those."""
    passed_on: dict[int, list[Measured]] = {}
    for ran in gradients_of(graph).nodes if leaves else ():
        for edge, stats in zip(graph.nodes[ran.node].next_edges, ran.outgoing, strict=False):
            if edge is not None and stats is not None and edge.next_node in leaves:
                passed_on.setdefault(edge.next_node, []).append(stats)
    return passed_on


def flow_rows(graph: Graph) -> tuple[FlowRow, ...]:
    """List module calls from the loss to the inputs, with the gradient at the last node of each."""
    return tuple(_flow(graph))


def _flow(graph: Graph) -> Iterator[FlowRow]:
    """Yield each module call; a smaller id is closer to the loss."""
    seen: set[int] = set()
    depths: dict[int, int] = {}  # of calls that have a row
    for ran in gradients_of(graph).nodes:
        call = graph.nodes[ran.node].module
        if call is None or call in seen:  # and so were the calls around it
            continue
        stats = _largest(ran.incoming)
        line = []
        while call is not None:
            line.append(call)
            call = graph.modules[call].parent
        for place, index in enumerate(reversed(line)):
            if index in seen or (stats is None and not is_any_unmeasured(ran.incoming)):
                continue
            seen.add(index)  # unmeasured: what is inside it has another gradient
            if stats is not None:
                module = graph.modules[index]
                depths[index] = sum(outer in depths for outer in line[len(line) - place :])
                yield FlowRow(path=module.path, class_name=module.class_name, call=module.call, depth=depths[index],
                              node=ran.node, stats=stats)  # fmt: skip


def fall_of(graph: Graph) -> Fall | None:
    """Compare the innermost modules at both ends of a flow; of several flows, where the gradient changes most.

    Networks beside each other, such as two critics, have a flow each, since none passes its gradient to the other.
    A module that makes the loss does not count as an end: the gradient there is what backward starts from, mostly 1.

    Returns:
        None if no flow has two modules with a finite gradient.
    """
    rows = flow_rows(graph)
    inside = [row for row, below in pairwise((*rows, None)) if row and (below is None or below.depth <= row.depth)]
    losses = {root.node for root in graph.roots if root.info is not None and not root.info.shape}
    usable = {row.node: row for row in inside if row.stats.norm > 0 and row.stats.is_finite and row.node not in losses}
    falls = [
        Fall(closest=usable[head], farthest=usable[end], factor=usable[head].stats.norm / usable[end].stats.norm)
        for head, end in _ends(graph, usable).items()
        if head != end
    ]
    return max(falls, key=lambda fall: abs(log(fall.factor)), default=None)


def _ends(graph: Graph, places: Collection[int]) -> dict[int, int]:
    """Return the last place that the gradient reaches from each of those that it reaches first."""
    heads: list[int] = []
    last: dict[int, int] = {}
    passed: dict[int, int] = {}  # node -> a bit for each head before it
    for number, node in enumerate(graph.nodes):  # in topological order
        bits = passed.pop(number, 0)
        if number in places:
            if not bits:
                bits = 1 << len(heads)
                heads.append(number)
            last.update((head, number) for place, head in enumerate(heads) if bits >> place & 1)
        for edge in node.next_edges if bits else ():
            if edge is not None:
                passed[edge.next_node] = passed.get(edge.next_node, 0) | bits
    return last


def gradient_notes(graph: Graph) -> tuple[GradientNote, ...]:
    """List the problems, the most important first."""
    return (*_loss(graph), *broken_gradients(graph), *_chains(graph), *_missing(graph))


def broken_gradients(graph: Graph) -> tuple[GradientNote, ...]:
    """List the nodes that returned gradients which are not finite, or zero."""
    return (*_nonfinite(graph), *_killed(graph))


def _loss(graph: Graph) -> Iterator[GradientNote]:
    loss = gradients_of(graph).loss
    if loss is not None and not isfinite(loss):
        yield GradientNote(kind="loss", text=f"The loss itself is {loss}: the forward pass produced it.", node=0)


def _nonfinite(graph: Graph) -> Iterator[GradientNote]:
    """Find the first node in the order of backward that received finite gradients and returned others.

    Or the first whose hooks did: those of the tensor that its operator made, and those before it.
    """
    ran_nodes = gradients_of(graph).nodes
    hooked = _changed_by_hooks(graph)
    suspects = [
        ran for ran in ran_nodes for stats in ran.outgoing if isinstance(stats, GradientStats) and stats.num_nonfinite
    ]
    for ran in sorted((*suspects, *hooked.values()), key=lambda node: node.order):
        hooks = hook_names(graph.nodes[ran.node]) if ran.node in hooked else ()
        if hooks or all(map(_is_finite, ran.incoming)):
            name = _name(graph, ran.node)
            changed = known(ran.incoming if hooks else ran.outgoing)
            bad = [stats for stats in changed if not stats.is_finite]
            total = sum(stats.num_nonfinite for stats in bad)
            elements = sum(stats.num_elements for stats in bad)
            made = f"{total:,} of {elements:,} elements as NaN or Inf"
            who = f"{', '.join(hooks)}, {'a hook' if len(hooks) == 1 else 'hooks'} on {name}," if hooks else name
            text = f"{who} received a finite gradient and returned {made}."
            parameters = tuple(
                row.name for row in parameter_rows(graph) if row.stats is not None and not row.stats.is_finite
            )
            yield GradientNote(kind="non-finite", text=text, node=ran.node, parameters=parameters, hooks=hooks)
            return


def hook_names(node: Node) -> tuple[str, ...]:
    """Name the hooks that may change what a node receives."""
    return tuple(hook.name or "a function" for hook in node.hooks if hook.kind in {"tensor", "pre"})


def _changed_by_hooks(graph: Graph) -> dict[int, NodeGradients]:
    """Find the nodes that have such hooks and received what is not finite, where all that led to them was finite.

    Not roots: their first gradient is the program's own. What led to a node is not known under compiled autograd.
    """
    ran_nodes = gradients_of(graph).nodes
    hooked = {
        ran.node: ran
        for ran in ran_nodes
        if graph.nodes[ran.node].hooks and hook_names(graph.nodes[ran.node]) and not all(map(_is_finite, ran.incoming))
    }
    sent = [
        (edge.next_node, measured)
        for ran in (ran_nodes if hooked else ())
        for edge, measured in zip(graph.nodes[ran.node].next_edges, ran.outgoing, strict=False)
        if edge is not None and edge.next_node in hooked and measured is not None
    ]
    finite = {node for node, measured in sent if _is_finite(measured)}
    others = {node for node, measured in sent if not _is_finite(measured)} | {root.node for root in graph.roots}
    return {node: ran for node, ran in hooked.items() if node in finite - others}


def _killed(graph: Graph) -> Iterator[GradientNote]:
    """Find nodes that received a gradient and returned zeros to every input; a weight of 0 is intentional."""
    ran_nodes = gradients_of(graph).nodes
    killed = [
        ran
        for ran in ran_nodes
        if ran.outgoing and _may_be_zero(ran.outgoing[0]) and _is_any_nonzero(ran.incoming) and _is_zero(ran.outgoing)
    ]
    if not killed:
        return
    zero = {row.node: row.name for row in parameter_rows(graph) if row.stats is not None and row.stats.is_zero}
    for ran in killed:
        if not _is_weighted(graph.nodes[ran.node]):
            behind = _leaves_behind(graph, ran.node) if zero else ()
            parameters = tuple(zero[node] for node in behind if node in zero)
            text = f"{_name(graph, ran.node)} received a gradient and returned only zeros."
            yield GradientNote(kind="killed", text=text, node=ran.node, parameters=parameters)


def _is_weighted(node: Node) -> bool:
    """Return whether a node multiplies by a constant scalar: the weight of a loss term, which may be 0 on purpose."""
    if not node.name.startswith("MulBackward") or all(edge is not None for edge in node.next_edges):
        return False
    factors = [value.tensor.info.shape for value in node.saved if value.tensor is not None]
    return bool(factors) and all(prod(size for size in shape if isinstance(size, int)) == 1 for shape in factors)


def _chains(graph: Graph) -> Iterator[GradientNote]:
    """Find runs of sibling modules, or of calls of one module, across which the norm changes by a large factor."""
    runs: dict[tuple[int, str], list[FlowRow]] = {}
    for row in _flow(graph):
        parent, _, last = row.path.rpartition(".")
        runs.setdefault((row.depth, f"calls of {module_name(graph, row.path)}"), []).append(row)
        if last.isdigit():
            runs.setdefault((row.depth, f"modules of {parent or 'the model'}"), []).append(row)
    for (_, what), rows in runs.items():
        alive = list(takewhile(lambda row: row.stats.norm > 0 and isfinite(row.stats.norm), rows))
        if len(alive) < MIN_CHAIN:
            continue
        factor = alive[-1].stats.norm / alive[0].stats.norm
        if not FAR > factor > 1 / FAR:
            kind: GradientNoteKind = "vanishing" if factor < 1 else "exploding"
            yield GradientNote(kind=kind, text=_chain_text(alive, what, factor, graph.model_name), node=alive[-1].node)


def _chain_text(rows: Sequence[FlowRow], what: str, factor: float, model: str) -> str:
    first, last = rows[0], rows[-1]
    is_calls = what.startswith("calls")
    start, end = (f"call {row.call}" if is_calls else f"module {shown_path(row.path, model)}" for row in (first, last))
    verb = "falls" if factor < 1 else "rises"
    return (
        f"The gradient {verb} from {first.stats.norm:.1e} at {start} to {last.stats.norm:.1e} at {end}, "
        f"through {len(rows):,} {what}."
    )


def _missing(graph: Graph) -> Iterator[GradientNote]:
    if graph.captured_at.kind == "grad":  # autograd.grad computes only the requested gradients
        return
    leaves = {number for number, node in enumerate(graph.nodes) if node.leaf is not None}
    reached = (ran.node for ran in gradients_of(graph).nodes if ran.node in leaves and _first(ran.incoming) is not None)
    if leaves.difference(reached):
        missing = tuple(row.name for row in parameter_rows(graph) if row.is_missing)
        text = f"{format_count(len(missing), 'leaf', 'leaves')} of the graph received no gradient."
        yield GradientNote(kind="missing", text=text, parameters=missing)
    if graph.unreached:
        are, them = ("is", "it") if len(graph.unreached) == 1 else ("are", "them")
        text = f"{format_count(len(graph.unreached), 'parameter')} of the model {are} not in this graph. "
        text += (
            f"Unless a custom Function does, this call gives {them} no gradient."
            if any(node.kind in {"custom", "opaque"} for node in graph.nodes)
            else f"This call gives {them} no gradient: see gradinspect check."
        )
        yield GradientNote(kind="missing", text=text, parameters=graph.unreached)


def _leaves_behind(graph: Graph, node_id: int) -> Iterator[int]:
    seen = {node_id}
    todo = [node_id]
    for current in todo:
        if graph.nodes[current].leaf is not None:
            yield current
        for edge in graph.nodes[current].next_edges:
            if edge is not None and edge.next_node not in seen:
                seen.add(edge.next_node)
                todo.append(edge.next_node)


def _name(graph: Graph, node_id: int) -> str:
    node = graph.nodes[node_id]
    frame = frame_of(graph, node)
    where = "" if frame is None else f" ({frame.file}:{frame.line}  {frame.code})"
    return f"#{node_id} {node.name}{where}"


def _is_finite(measured: Measured) -> bool:
    """Return whether a gradient is known to be finite."""
    return measured is None or (isinstance(measured, GradientStats) and measured.num_nonfinite == 0)


def _may_be_zero(measured: Measured) -> bool:
    return measured is None or (isinstance(measured, GradientStats) and measured.num_zeros == measured.num_elements)


def _is_zero(gradients: Sequence[Measured]) -> bool:
    """Return whether there are gradients, and all of them are known to be zero."""
    sizable = [stats for stats in known(gradients) if stats.num_elements]
    return bool(sizable) and all(stats.is_zero for stats in sizable) and not is_any_unmeasured(gradients)


def _is_any_nonzero(gradients: Sequence[Measured]) -> bool:
    for stats in gradients:  # noqa: SIM110  # it runs for each node: a generator would cost more
        if isinstance(stats, GradientStats) and stats.num_zeros < stats.num_elements:
            return True
    return False


def _only(several: Sequence[Measured]) -> Measured:
    """Return the only gradient; the sum of several is unknown."""
    return several[0] if len(several) == 1 else "the sum of what several nodes passed on" if several else None


def _first(several: Sequence[Measured]) -> Measured:
    return next((item for item in several if item is not None), None)


def _largest(several: Sequence[Measured]) -> GradientStats | None:
    return max(known(several), key=lambda item: item.num_elements, default=None)
