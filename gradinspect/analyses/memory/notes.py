"""Notes on held memory: storages kept by slices, data kept twice, what frozen layers and compiled nodes keep."""

from typing import Literal, TypeAlias

from gradinspect.analyses.memory.compiled import compiled_kept, kept_sentences
from gradinspect.analyses.memory.held import CAST, HeldStorage, Memory, cast_source
from gradinspect.analyses.structure.call_names import leaf_shown
from gradinspect.graph import Graph, Record, frame_of, module_name, source_of
from gradinspect.units import format_bytes, format_count, format_tensor

MIN_WASTE = 64 * 1024  # bytes kept beyond the slice; fewer do not matter
MIN_SHARE_WASTED = 0.01  # of all bytes held for backward
NoteKind: TypeAlias = Literal["slice", "twice", "shared", "frozen", "compiled"]


class MemoryNote(Record, frozen=True, kw_only=True):
    """One note."""

    kind: NoteKind
    num_bytes: int  # that the note is about
    text: str
    node: int | None = None


def memory_notes(graph: Graph, memory: Memory) -> tuple[MemoryNote, ...]:
    """Collect all notes, the largest of each kind first."""
    notes = [
        *_slices(graph, memory),
        *_twice(graph, memory),
        *_shared(memory),
        *_frozen(graph, memory),
        *_compiled(graph),
    ]
    order = {"slice": 0, "twice": 1, "frozen": 2, "compiled": 3, "shared": 4}
    return tuple(sorted(notes, key=lambda note: (order[note.kind], -note.num_bytes)))


def _slices(graph: Graph, memory: Memory) -> list[MemoryNote]:
    """Find tensors that use part of their storage and keep all of it, where the rest is worth freeing."""
    return [
        MemoryNote(
            kind="slice",
            num_bytes=held.num_bytes - held.shown_bytes,
            node=held.counted_by,
            text=f"{_what(held)} at #{held.counted_by} holds {format_bytes(held.shown_bytes)}, "
            f"keeps {format_bytes(held.num_bytes)}{_line(graph, held.counted_by)}{_advice(graph, held)}",
        )
        for held in memory.storages
        if _wastes(held, memory)
    ]


def _wastes(held: HeldStorage, memory: Memory) -> bool:
    """Return whether only backward keeps a part that no saved tensor uses, and whether that part matters.

    Memory of a variable, parameter or buffer stays alive anyway: a batch is a slice of its data set.
    """
    if held.held_as in {"parameter", "buffer", "packed", "checkpoint"} or held.name is not None:
        return False
    wasted = held.num_bytes - held.shown_bytes
    return held.shown_bytes > 0 and wasted >= max(MIN_WASTE, memory.extra_bytes * MIN_SHARE_WASTED)


def _advice(graph: Graph, held: HeldStorage) -> str:
    """Say what clone() would free; "" if the user has no line to change, or the whole may be held elsewhere."""
    if held.made_by is None or not (_is_in_own_code(graph, held.counted_by) and _is_in_own_code(graph, held.made_by)):
        return ""
    return f": clone() it to free {format_bytes(held.num_bytes - held.shown_bytes)}"


def _is_in_own_code(graph: Graph, node_id: int) -> bool:
    """Return whether the line that made a node belongs to the module it was made in, or to no module.

    Inside torch's own modules the line is their caller's, which cannot change what they do.
    """
    node = graph.nodes[node_id]
    frame = frame_of(graph, node)
    if frame is None:
        return False
    if node.module is None:
        return True
    owner = frame.function.rpartition(".")[0].rpartition(".")[2]
    return owner == graph.modules[node.module].class_name


def _twice(graph: Graph, memory: Memory) -> list[MemoryNote]:
    """Find tensors that are kept in two dtypes: as they were made, and as a cast."""
    makers = {held.made_by: held for held in memory.storages if held.made_by is not None and held.held_as != "cast"}
    notes = []
    for held in memory.storages:
        if held.held_as != "cast" or held.made_by is None:
            continue
        source = _source_of(graph, held.made_by)
        original = None if source is None else makers.get(source)
        if original is not None:
            notes.append(
                MemoryNote(
                    kind="twice",
                    num_bytes=min(held.num_bytes, original.num_bytes),
                    node=held.counted_by,
                    text=f"{_what(original)}, {format_bytes(original.num_bytes)}, is kept again as {_what(held)}, "
                    f"{format_bytes(held.num_bytes)}{_line(graph, held.counted_by)}",
                )
            )
    return notes


def _source_of(graph: Graph, maker: int) -> int | None:
    """Return the node whose output a cast copied; `maker` may be a view of the copy."""
    seen = 0
    while graph.nodes[maker].name != CAST and seen < len(graph.nodes):
        edge = next((edge for edge in graph.nodes[maker].next_edges if edge is not None), None)
        if edge is None:
            return None
        maker, seen = edge.next_node, seen + 1
    source = cast_source(graph, maker)
    return None if source is None else source.node


def _shared(memory: Memory) -> list[MemoryNote]:
    """Count what several nodes save."""
    shared = [held for held in memory.storages if len(held.savers) > 1 and held.held_as not in {"parameter", "buffer"}]
    num_bytes = sum(held.num_bytes for held in shared)
    if not shared:
        return []
    verb = "is" if len(shared) == 1 else "are"
    size = f"{format_count(len(shared), 'storage')}, {format_bytes(num_bytes)}"
    text = f"{size}, {verb} saved by several nodes, counted once"
    return [MemoryNote(kind="shared", num_bytes=num_bytes, text=text)]


def _frozen(graph: Graph, memory: Memory) -> list[MemoryNote]:
    """Find modules whose parameters get no gradient but which keep memory because gradients pass through them."""
    trained = {node.leaf.storage for node in graph.nodes if node.leaf is not None and node.leaf.requires_grad}
    modules: dict[str, int] = {}  # path -> one node of it
    for held in memory.storages:
        if held.held_as == "parameter" and held.storage not in trained:
            for saver in held.savers:
                module = graph.nodes[saver].module
                if module is not None:
                    modules.setdefault(graph.modules[module].path, saver)
    held_bytes: dict[str, int] = {}
    for held in memory.storages:
        module = graph.nodes[held.counted_by].module
        if held.held_as not in {"parameter", "buffer"} and module is not None:
            path = graph.modules[module].path
            held_bytes[path] = held_bytes.get(path, 0) + held.num_bytes
    targets = _targets(graph) if modules else []
    return [
        MemoryNote(
            kind="frozen",
            num_bytes=held_bytes[path],
            node=saver,
            text=f"'{module_name(graph, path)}' is frozen and keeps {format_bytes(held_bytes[path])}, because "
            f"gradients pass through it to '{targets[saver]}'",
        )
        for path, saver in modules.items()
        if held_bytes.get(path) and targets[saver] is not None
    ]


def _compiled(graph: Graph) -> list[MemoryNote]:
    """Say of each compiled node what eager keeps too, and what is computed again."""
    return [
        MemoryNote(kind="compiled", num_bytes=sum(one.num_bytes for one in group), node=group[0].node, text=text)
        for text, group in kept_sentences(compiled_kept(graph))
    ]


def _targets(graph: Graph) -> list[str | None]:
    """Find for each node a leaf its gradients reach, in one pass from the end: edges point to larger ids."""
    targets: list[str | None] = [None] * len(graph.nodes)
    for node_id in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[node_id]
        if node.leaf is not None:
            targets[node_id] = leaf_shown(graph, node.leaf) or f"#{node_id}"
            continue
        for edge in node.next_edges:
            if edge is not None and targets[edge.next_node] is not None:
                targets[node_id] = targets[edge.next_node]
                break
    return targets


def _what(held: HeldStorage) -> str:
    name = held.name or ("" if held.made_by is None else f"#{held.made_by}")
    looks = "" if held.info is None else format_tensor(held.info)
    return " ".join(filter(None, (name, looks))) or held.held_as


def _line(graph: Graph, node_id: int) -> str:
    line = source_of(graph, graph.nodes[node_id])
    return "" if line is None else f" ({line})"
