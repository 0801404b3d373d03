"""Attribution of bytes: each storage saved for backward counts once, for the value that saves it first."""

from gradinspect.graph import Graph, Origin, SavedValue


def storages_of(value: SavedValue) -> tuple[int, ...]:
    """Return the storages that a saved value keeps alive: its tensor's, or those of a packed object."""
    if value.tensor is None or value.tensor.storage is None:
        return value.held_storages
    return (value.tensor.storage, *value.held_storages) if value.held_storages else (value.tensor.storage,)


def first_savers(graph: Graph) -> dict[int, int]:
    """Find the node that saves each storage first, in the order of node ids and attributes.

    Returns:
        Storage -> node id. Storages that no node saves are left out.
    """
    savers: dict[int, int] = {}
    for node_id, node in enumerate(graph.nodes):
        for value in node.saved:
            for storage in storages_of(value):
                if storage not in savers:
                    savers[storage] = node_id
    return savers


def origins_of_saved(graph: Graph) -> dict[int, Origin]:
    """Return the origin of each saved storage.

    That is the storage's own origin, or else that of the first saved value that refers to it and has one. Anything else
    (a pack hook's copy) exists only for backward, so it is an activation.
    """
    origins: dict[int, Origin | None] = {}
    for node in graph.nodes:
        for value in node.saved:
            for storage in storages_of(value):
                if origins.get(storage) is None:
                    origins[storage] = graph.storages[storage].origin or value.origin
    return {storage: origin or "activation" for storage, origin in origins.items()}
