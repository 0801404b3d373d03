"""Attribution of bytes: each storage held because of backward counts once, for the value that saves it first.

NOTE [Bytes held]
There is one definition of bytes on every screen: those of storages that are in memory because backward will need them,
each counted once, as a whole, for the first node that saves it. Parameters and buffers are in memory anyway: they are
left out, and named beside the total.
"""

from collections.abc import Iterable, Iterator, Sequence

from gradinspect.graph import Graph, Origin, SavedValue

IN_MEMORY_ANYWAY: frozenset[Origin] = frozenset({"parameter", "buffer"})


def storages_of(value: SavedValue) -> tuple[int, ...]:
    """Return the storages that a saved value keeps alive: its tensor's, or those of a packed object."""
    if value.tensor is None or value.tensor.storage is None:
        return value.held_storages
    return (value.tensor.storage, *value.held_storages) if value.held_storages else (value.tensor.storage,)


def held_bytes_by_node(graph: Graph, order: Sequence[int] | None = None) -> list[int]:
    """Return for each node the bytes of the storages that it is the first to hold: NOTE [Bytes held].

    Args:
        graph: The graph.
        order: All node ids; the first in it that saves a storage counts it. None: in order of ids.
    """
    ids = range(len(graph.nodes))
    first = _first_savers(graph, ids)
    origins = origins_of(graph, first)
    num_bytes = [0] * len(graph.nodes)
    for storage, node_id in (first if order is None else _first_savers(graph, order)).items():
        if origins[storage] not in IN_MEMORY_ANYWAY:
            num_bytes[node_id] += graph.storages[storage].num_bytes
    return num_bytes


def savers_of_storages(graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Yield the first and the last node that saves each storage that is held, in order of the first; and its bytes."""
    ids = range(len(graph.nodes))
    first, last = _first_savers(graph, ids), _first_savers(graph, reversed(ids))
    origins = origins_of(graph, first)
    for storage, node_id in first.items():
        if origins[storage] not in IN_MEMORY_ANYWAY:
            yield node_id, last[storage], graph.storages[storage].num_bytes


def origins_of_saved(graph: Graph) -> dict[int, Origin]:
    """Return the origin of each saved storage: see `origins_of`."""
    return origins_of(graph, _first_savers(graph, range(len(graph.nodes))))


def _first_savers(graph: Graph, order: Iterable[int]) -> dict[int, int]:
    """Find the node that saves each storage first in an order of node ids."""
    nodes = graph.nodes
    savers: dict[int, int] = {}
    for node_id in order:
        for value in nodes[node_id].saved:
            tensor = value.tensor
            if tensor is not None and tensor.storage is not None and not value.held_storages:  # nearly all
                if tensor.storage not in savers:
                    savers[tensor.storage] = node_id
                continue
            for storage in storages_of(value):
                savers.setdefault(storage, node_id)
    return savers


def origins_of(graph: Graph, saved: Iterable[int]) -> dict[int, Origin]:
    """Return the origin of each of some saved storages.

    That is the storage's own origin, or else that of the first saved value that refers to it and has one. Anything else
    (a pack hook's copy) exists only for backward, so it is an activation.
    """
    known = {storage: graph.storages[storage].origin for storage in saved}
    unknown = {storage for storage, origin in known.items() if origin is None}
    for node in graph.nodes if unknown else ():
        for value in node.saved:
            if value.origin is not None:
                for storage in unknown.intersection(storages_of(value)):
                    known[storage] = value.origin
                    unknown.remove(storage)
    return {storage: origin or "activation" for storage, origin in known.items()}
