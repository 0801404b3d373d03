"""Whose bytes are whose: each storage that is saved for backward counts once, for the value that saves it first."""

from gradinspect.graph import Graph, Origin, SavedValue


def storages_of(value: SavedValue) -> tuple[int, ...]:
    """Return the storages that a saved value keeps alive: its tensor's own, or what a packed object holds."""
    if value.tensor is None or value.tensor.storage is None:
        return value.held_storages
    return (value.tensor.storage, *value.held_storages) if value.held_storages else (value.tensor.storage,)


def first_savers(graph: Graph) -> dict[int, int]:
    """Find the node that saves each storage first, by node id, attributes in their order.

    Returns:
        Storage -> node id. A storage that only a leaf or a view shows, and no node saves, is left out.
    """
    savers: dict[int, int] = {}
    for node_id, node in enumerate(graph.nodes):
        for value in node.saved:
            for storage in storages_of(value):
                if storage not in savers:
                    savers[storage] = node_id
    return savers


def origins_of_saved(graph: Graph) -> dict[int, Origin]:
    """Say what each saved storage is.

    The storage's own origin says it, else that of the first saved value which refers to it and has one. What is left
    (a pack hook's copy) exists for backward alone, so it is an activation.
    """
    origins: dict[int, Origin | None] = {}
    for node in graph.nodes:
        for value in node.saved:
            for storage in storages_of(value):
                if origins.get(storage) is None:
                    origins[storage] = graph.storages[storage].origin or value.origin
    return {storage: origin or "activation" for storage, origin in origins.items()}
