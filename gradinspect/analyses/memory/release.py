"""When backward frees the memory held for it.

What comes in: a `Graph` and its `Memory`. What goes out: how much is still held as nodes run, in the order of their
ids. A storage is freed with the last node that keeps it. What something else holds too (the program, a hook) lives
longer; the record does not know about it.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from gradinspect.analyses.memory.held import Memory
from gradinspect.analyses.memory.rows import extra_storages
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Record

MAX_MOMENTS = 200


class ReleaseMoment(Record, frozen=True):
    """The state after a node has run."""

    node: int
    freed_bytes: int  # since the previous moment
    held_bytes: int  # still held, beyond parameters and buffers


def release_curve(graph: Graph, memory: Memory, *, max_moments: int = MAX_MOMENTS) -> tuple[ReleaseMoment, ...]:
    """Return how held memory falls, at the nodes that free any; adjacent moments are merged if there are too many."""
    freed = [0] * len(graph.nodes)
    for held in extra_storages(memory):
        freed[max(held.savers)] += held.num_bytes
    width = max(1, -(-sum(map(bool, freed)) // max_moments))
    return tuple(_joined(_moments(freed, memory.extra_bytes), width))


def _moments(freed: Sequence[int], held_bytes: int) -> Iterator[ReleaseMoment]:
    """Yield the nodes that free any memory, one by one: there may be a million."""
    for node, freed_bytes in enumerate(freed):
        if freed_bytes:
            held_bytes -= freed_bytes
            yield ReleaseMoment(node=node, freed_bytes=freed_bytes, held_bytes=held_bytes)


def nodes_to_run(graph: Graph, at_node: int | None, chosen: frozenset[int] | None) -> frozenset[int] | None:
    """Return those of some nodes that have not run when backward reaches a node: what they keep is still held.

    Args:
        graph: The graph.
        at_node: The node that is about to run; None: backward has not begun.
        chosen: The nodes to choose from; None: all.

    Raises:
        GradInspectError: There is no such node.
    """
    if at_node is None:
        return chosen
    number = len(graph.nodes)
    if at_node >= max(number, 1):
        raise GradInspectError(f"'--at-node {at_node}': there is no such node.", f"The last one is #{number - 1}.")
    left = frozenset(range(at_node, number))
    return left if chosen is None else left & chosen


def _joined(moments: Iterator[ReleaseMoment], width: int) -> Iterator[ReleaseMoment]:
    """Merge as many adjacent moments into one."""
    while part := tuple(islice(moments, width)):
        yield ReleaseMoment(
            node=max(part, key=lambda moment: moment.freed_bytes).node,
            freed_bytes=sum(moment.freed_bytes for moment in part),
            held_bytes=part[-1].held_bytes,
        )
