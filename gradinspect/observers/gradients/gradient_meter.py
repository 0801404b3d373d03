"""Measure one backward call through node hooks: statistics of the gradients that reach and leave each node.

NOTE [Measuring without changing]
Hooks return nothing, so the engine continues with the same gradients. Statistics are computed from detached tensors, so
that no node is added under create_graph=True, and outside the modes of the program. They are fetched once, at the end.
A post hook sees gradients after the engine has reduced broadcasting. AccumulateGrad gets no post hook, because it would
have to copy a gradient that it can otherwise steal. Each gradient is measured once: what leaves one node by the only
edge into another is what reaches that node, and a transpose passes on the elements that it got.

NOTE [Nodes without a hook]
A hook costs several times what a small node does. Where nothing is timed, a node in the middle of a chain gets none:
what reaches it is measured where it leaves the node before, and what leaves it where it reaches the node after. A sum
gets none at all where it hands on what reached it: that is measured once, where it arrives. Not in a program with
hooks: one on a non-leaf tensor cannot be seen, and may change what arrives.
Source: torch/csrc/autograd/engine.cpp `validate_outputs` reduces what was broadcast; derivatives.yaml, torch 2.13.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from msgspec.structs import replace

from gradinspect.analyses.gradients.timeline import devices_of, devices_of_all
from gradinspect.graph import Edge, Gradients, GradientStats, Graph, Measured, Node, NodeGradients
from gradinspect.observers.gradients.figures import Figures
from gradinspect.observers.gradients.node_meter import Leaving, NodeMeter, Shared
from gradinspect.observers.gradients.norms import Norms, pending_scalar, scalar_value
from gradinspect.observers.gradients.unhooked_leaves import UnhookedLeaves
from gradinspect.observers.graphs.live_graph import Survivors
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.values.magnitudes import PendingFigures, combined, piece_beside
from gradinspect.recording.walk import Walk, walk_like
from gradinspect.torch_api.engine import is_compiled_autograd
from gradinspect.torch_api.hooks import NodeHooks, hooks_were_made, note_ours
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR
from gradinspect.torch_api.patching.turns import of_this_call

Stats: TypeAlias = tuple[Measured, ...]

# Nodes that pass on all elements of their gradient, in another order or shape.
PERMUTING = frozenset(
    f"{name}Backward{number}"
    for name in ("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Alias")
    for number in range(3)
)
_SCALED_SUMS = frozenset(("AddBackward0",))  # whose second edge gets the same, if it is not scaled
_SUMS = _SCALED_SUMS | {"SubBackward0"}  # whose first one does


class GradientMeter:
    """Measures the gradients of one recorded graph. Create it before the engine runs, finish after."""

    def __init__(
        self,
        graph: Graph,
        outputs: Sequence[OutputTensor],
        walk: Walk | None = None,
        *,
        times: bool = True,
        only_leaves: bool = False,
    ) -> None:
        """Hook every node, unless compiled autograd is on.

        Args:
            graph: The record.
            outputs: The tensors that backward starts from.
            walk: The walk that the record was made from, if still open. It is closed at the end.
            times: Also time each node, which needs a hook before it as well as after it.
            only_leaves: Measure what reaches leaves alone; other nodes are only followed for as long as they live.
        """
        self._graph = graph
        self._loss = scalar_value(outputs)
        self._pending_loss = pending_scalar(outputs)
        self._walk = walk or walk_like(graph, [output.edge[0] for output in outputs])
        self._walk.numbers.clear()  # for a million nodes it takes as much memory as a hook on each
        self._shared = Shared(piece_beside(self.leaves().values()))
        self.other_rows: list[list[list[float]]] = []
        self._before_each = NodeHooks()
        self._after_each = NodeHooks()  # on inner nodes
        self._meters = _meters_of(graph, self._shared)
        self._unhooked: UnhookedLeaves | None = None  # NOTE [No hooks under compiled autograd]
        if is_compiled_autograd():
            self._unhooked = UnhookedLeaves(self.leaves(), are_accumulated=graph.captured_at.kind != "grad")
        else:
            self._hook(times=times, only_leaves=only_leaves)

    def _hook(self, *, times: bool, only_leaves: bool) -> None:
        graph = self._graph
        if not (times or hooks_were_made()):
            _measure_in_passing(graph, self._meters)
        has_devices = times and bool(devices_of_all(graph))
        for node, record, meter in zip(self._walk.nodes, graph.nodes, self._meters, strict=True):
            if meter.is_passed:
                continue
            is_leaf = self._walk.sequence_nrs[meter.number] == ACCUMULATE_GRAD_NR
            kind = type(node)
            meter.is_timed = not (has_devices and _is_on_device(graph, record))
            is_written = record.kind == "custom" and not only_leaves  # custom code may write into its gradient
            if times or is_leaf or is_written:
                before = of_this_call(meter.before) if is_leaf else meter.before
                self._before_each.add(kind.register_prehook(node, before))
            if not is_leaf:
                self._after_each.add(kind.register_hook(node, _measure_nothing if only_leaves else meter))
        note_ours(self._before_each)
        note_ours(self._after_each)

    def survivors(self) -> Survivors:
        """Return a tracker of inner nodes that are still alive. AccumulateGrad nodes outlive a graph.

        A node without a hook keeps one alive that has a hook.
        """
        return Survivors(self._after_each.nodes)

    def leaves(self) -> dict[int, torch.Tensor]:
        """Return the tensors behind the AccumulateGrad nodes, by the number of the node."""
        return self._walk.leaves()

    def close(self) -> None:
        """Remove the hooks and release everything."""
        self._before_each.remove()
        self._after_each.remove()
        self._walk.close()

    def finish(self, others: Sequence[PendingFigures] = ()) -> Graph:
        """Remove the hooks, fetch the statistics, and return the graph with them.

        Args:
            others: What else to fetch; `other_rows` are its rows then, and empty if the device has failed.
        """
        if self._unhooked is not None:
            self._read_leaves(self._unhooked)
        norms = Norms(self._shared.measurements.piece)
        for number, leaf in self.leaves().items():
            norms.take(number, leaf)
        self.close()
        pending = self._pending_loss
        losses = [] if pending is None else [pending]
        rows = self._shared.measurements.fetch([*others, *losses, *norms.pending])
        self.other_rows, rows = rows[: len(others)], rows[len(others) :]
        loss = self._loss if pending is None or not rows else combined(pending, rows.pop(0)).mean
        norms.settle(rows)
        gradients = Gradients(
            nodes=tuple(_resolved(self._graph, self._meters)),
            weight_norms=norms.known,
            loss=loss,
            notes=norms.notes("norm"),
            at_leaves_only=self._unhooked is not None,
        )
        return replace(self._graph, gradients=gradients)

    def _read_leaves(self, unhooked: UnhookedLeaves) -> None:
        for number, gradient in unhooked.gradients(self.leaves()):
            meter = self._meters[number]
            if isinstance(gradient, str):
                meter.order = next(self._shared.order)
                meter.incoming = (Figures(None, None, gradient),)
            else:
                meter.before((gradient,))
            meter.began = None


def _meters_of(graph: Graph, shared: Shared) -> list[NodeMeter]:
    """Make one for each node."""
    leaving = _LeavingOfNodes(graph)
    return [
        NodeMeter(shared, number, record.next_edges, leaving.of(record)) for number, record in enumerate(graph.nodes)
    ]


def _measure_nothing(_outgoing: object, _incoming: object) -> None:
    """Do nothing after a node: its hook says whether it is alive."""


def _is_on_device(graph: Graph, node: Node) -> bool:
    """Return whether a node works on a device, or passes gradients on to one."""
    after = (graph.nodes[edge.next_node] for edge in node.next_edges if edge is not None)
    return any(map(devices_of, (node, *after)))


class _LeavingOfNodes:
    """Chooses where the gradients that leave each node are measured."""

    def __init__(self, graph: Graph) -> None:
        # autograd.grad captures gradients before they reach the leaves, so they are measured where they leave a node.
        self._num_nodes = len(graph.nodes)
        self._alone = _single_edges(graph) if graph.captured_at.kind != "grad" else frozenset()
        self._known: dict[tuple[Any, ...], Leaving] = {}

    def of(self, node: Node) -> Leaving:
        """Return that of a node. A generated one computes nothing for an edge that leads nowhere."""
        alone, num_nodes = self._alone, self._num_nodes
        are_alone = [
            None if edge is None else edge.next_node + edge.input_nr * num_nodes in alone for edge in node.next_edges
        ]
        key = (node.kind, node.name, *are_alone)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _leaving(node, are_alone)
        return known


def _leaving(node: Node, are_alone: Sequence[bool | None]) -> Leaving:
    here = [place for place, is_alone in enumerate(are_alone) if is_alone is False]
    if node.kind not in {"generated", "accumulate_grad"}:
        here = [place for place, is_alone in enumerate(are_alone) if not is_alone]
    alone = [place for place, is_alone in enumerate(are_alone) if is_alone]
    permutes = node.name in PERMUTING and len(are_alone) == 1 and bool(alone)
    passes = node.kind == "generated" and bool(alone) and not here
    return Leaving(tuple(here), tuple(alone), permutes, passes)


def _measure_in_passing(graph: Graph, meters: Sequence[NodeMeter]) -> None:
    """Choose the nodes that need no hook, root side first. NOTE [Nodes without a hook]."""
    nodes = graph.nodes
    for meter in meters:
        node = nodes[meter.number]
        if node.name in _SUMS and meter.leaving.passes and _leads_on(nodes, meter) and _hands_on(nodes, node):
            meter.is_passed = meter.hands_on = True
    for meter in meters:
        if meter.is_passed:
            continue
        for place in meter.leaving.alone:
            after = meters[meter.edges[place].next_node]  # type: ignore[union-attr]  # those that stand alone lead on
            if (
                after.leaving.passes
                and not after.is_passed
                and len(nodes[after.number].forward_outputs) == 1
                and _leads_on(nodes, after)
            ):
                after.is_passed = True
                meter.places += (place,)
                meter.passed += (after,)


def _leads_on(nodes: Sequence[Node], meter: NodeMeter) -> bool:
    """Return whether a node leads to one that is not a leaf, so that what has a hook stays alive as long as it."""
    for edge in meter.edges:  # noqa: SIM110  # it runs for each node: a generator would cost more
        if edge is not None and nodes[edge.next_node].kind != "accumulate_grad":
            return True
    return False


def _hands_on(nodes: Sequence[Node], node: Node) -> bool:
    """Return whether a sum hands on what reaches it by every edge: neither scaled, nor reduced, nor cast.

    By every edge, because the engine may be asked for what lies behind one of them alone.
    """
    places = [place for place, edge in enumerate(node.next_edges) if edge is not None]
    if places != [0] and (
        node.name not in _SCALED_SUMS
        or not any(value.name == "_saved_alpha" and value.value == 1 for value in node.saved)
    ):
        return False
    edges = [edge for edge in node.next_edges if edge is not None]
    are_known = all(info is not None and info.layout == "strided" for info in node.forward_outputs)
    return are_known and all(node.forward_outputs == nodes[edge.next_node].forward_outputs for edge in edges)


def _single_edges(graph: Graph) -> frozenset[int]:
    """Find the inputs of nodes that only one edge leads to, and that no hook of the user may change.

    Returns:
        The number of each: that of its node, and of the input times the number of nodes; they are counted faster.
    """
    num_nodes = len(graph.nodes)
    counts = Counter(root.node + root.output_nr * num_nodes for root in graph.roots)
    counts.update(
        [edge.next_node + edge.input_nr * num_nodes for node in graph.nodes for edge in node.next_edges if edge]
    )
    hooked = {number for number, node in enumerate(graph.nodes) if node.hooks}
    return frozenset(
        [place for place, count in counts.items() if count == 1 and not (hooked and place % num_nodes in hooked)]
    )


def _resolved(graph: Graph, meters: list[NodeMeter]) -> list[NodeGradients]:
    """Combine the statistics. Edges lead to larger ids, so what a node passes on is known before the node.

    Each meter is taken off the list as it is read, so that its memory can be reused for the results.
    """
    arrived: list[Stats] = [()] * len(meters)
    order_of: list[int | None] = [None] * len(meters)
    found: list[NodeGradients] = []
    while meters:
        meter = meters.pop()
        number, order = meter.number, meter.order
        if meter.hands_on:  # it ran right before the first of those that it leads to
            orders = [order_of[edge.next_node] for edge in meter.edges if edge is not None]
            order = min([one for one in orders if one is not None], default=None)
        order_of[number] = order
        if order is None:
            continue
        if meter.is_passed and not any(order_of[edge.next_node] is not None for edge in meter.edges if edge):
            continue  # a part of the graph that was not asked for
        went = _went(meter, arrived)
        if meter.hands_on:
            came: Stats = (next((one for one in went if one is not None), None),)
        elif meter.incoming is not None:
            came = tuple([None if one is None else one.stats for one in meter.incoming])
        else:
            came = (_reshaped(went[0], graph.nodes[number]),) if went else ()
        arrived[number] = came
        # by position, which is faster: there may be a million
        found.append(NodeGradients(number, order, came, went, meter.seconds))
    found.reverse()
    return found


def _went(meter: NodeMeter, arrived: Sequence[Stats]) -> Stats:
    """Return what left a node by each edge."""
    leaving = meter.leaving
    if len(meter.edges) == 1 and leaving.alone:  # nearly all in a chain
        (edge,) = meter.edges
        came = () if edge is None else arrived[edge.next_node]
        return came if len(came) == 1 and edge is not None and not edge.input_nr else (_arrived(arrived, edge),)
    went: list[Measured] = [None] * len(meter.edges)
    for place in leaving.alone:
        went[place] = _arrived(arrived, meter.edges[place])
    for place, measured in zip(leaving.here, meter.outgoing, strict=False):
        went[place] = None if measured is None else measured.stats
    return tuple(went)


def _arrived(arrived: Sequence[Stats], edge: Edge | None) -> Measured:
    """Return what was measured where an edge leads; None if that node did not run."""
    came = () if edge is None else arrived[edge.next_node]
    return came[edge.input_nr] if edge is not None and edge.input_nr < len(came) else None


def _reshaped(stats: Measured, node: Node) -> Measured:
    """Give the statistics of a gradient the shape that it had before its elements were reordered."""
    info = node.forward_outputs[0] if node.forward_outputs else None
    if not isinstance(stats, GradientStats) or info is None or not all(isinstance(size, int) for size in info.shape):
        return stats
    return replace(stats, shape=tuple(size for size in info.shape if isinstance(size, int)))
