"""What is often a mistake, and as often meant: it is said in a note, and is never a finding.

A loss that is added twice may be weighed so; a target through which gradients flow may belong to a residual that is to
be minimized as a whole.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors, calls_behind
from gradinspect.checks.findings import line_of
from gradinspect.graph import Frame, Graph, Node, frame_of
from gradinspect.units import format_count

_LINEAR = frozenset((
    "add", "sub", "mul", "rmul", "radd", "rsub", "neg", "unsqueeze", "squeeze", "view", "reshape", "float", "to",
    "clone", "getitem",
))  # fmt: skip
_SUMS = _LINEAR | frozenset(("sum", "mean", "div", "truediv", "stack"))
_REGRESSIONS = frozenset(("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"))


class Bootstrap(NamedTuple):
    """A regression on a target that was computed by what is trained: `reward + 0.99 * q(next_state)`."""

    target: int  # the call that made it
    loss: int


def bootstraps(calls: Sequence[Call], root: Read) -> Iterator[Bootstrap]:
    """Find the losses behind a root whose target has a gradient to the same parameters as the prediction."""
    for number in calls_behind(calls, root, _SUMS):
        call = calls[number]
        if call.name not in _REGRESSIONS or len(call.reads) < 2:
            continue
        prediction, target = call.reads[:2]
        are_live = target.leads_back and prediction.leads_back
        if are_live and _is_shifted(calls, target) and _leaves(calls, prediction) & _leaves(calls, target):
            yield Bootstrap(target.call, number)


def bootstrap_note(target: Frame | None, loss: Frame | None) -> str:
    """Say where a target is computed that gradients flow through."""
    return (
        f"Perhaps meant: gradients also flow through the target that {line_of(target)} computes for the loss at "
        f"{line_of(loss)}. If it is only to be reached, as the target of Q-learning, detach() it."
    )


def repeated_terms(graph: Graph) -> Iterator[str]:
    """Say which terms are added more than once to a loss, with a weight of 1."""
    counts = [0] * len(graph.nodes)
    adders: dict[int, list[Node]] = {}
    for root in graph.roots:
        counts[root.node] = 1
    last = max((root.node for root in graph.roots), default=-1)
    for number, node in enumerate(graph.nodes):  # from the root to the leaves
        if number > last:  # nearly all of a graph is not part of the sum
            return
        if counts[number] > 1 and _is_scalar(node):
            yield _repeated(graph, node, adders[number], counts[number])
            continue
        for edge in node.next_edges if counts[number] and _adds(node) else ():
            if edge is not None:
                counts[edge.next_node] += 1
                last = max(last, edge.next_node)
                adders.setdefault(edge.next_node, []).append(node)


def _is_shifted(calls: Sequence[Call], target: Read) -> bool:
    """Return whether something without a graph is added to a target, as a reward is."""
    for number in calls_behind(calls, target, _LINEAR):
        call = calls[number]
        if call.name.strip("_") in ("add", "radd") and {read.is_live for read in call.reads} == {True, False}:
            return True
    return False


def _leaves(calls: Sequence[Call], read: Read) -> set[int]:
    behind = ancestors(calls, read.call, stops_at_leaves=True) if read.call != OUTSIDE else set()
    return {one.leaf for number in behind for one in calls[number].reads if one.leaf != NO_LEAF and one.is_live}


def _adds(node: Node) -> bool:
    """Return whether a node adds single numbers up without weights."""
    if node.name.startswith("StackBackward"):
        return all(output is not None and len(output.shape) == 1 for output in node.forward_outputs)
    weights = [value.value for value in node.saved if value.name == "_saved_alpha"]
    return node.name.startswith("AddBackward") and _is_scalar(node) and all(weight == 1 for weight in weights)


def _is_scalar(node: Node) -> bool:
    return bool(node.forward_outputs) and all(
        output is not None and not output.shape for output in node.forward_outputs
    )


def _repeated(graph: Graph, node: Node, adders: Sequence[Node], count: int) -> str:
    lines = dict.fromkeys(line_of(frame_of(graph, one)) for one in reversed(adders))
    return (
        f"Perhaps meant: what {line_of(frame_of(graph, node))} computes is added to the loss "
        f"{format_count(count, 'time')}, at {' and '.join(lines)}."
    )
