"""The saved-attribute table: what every node keeps for backward, one row per saved value."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, get_args

from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, origins_of_saved, storages_of
from gradinspect.analyses.selection.rows import Fields
from gradinspect.analyses.structure.call_names import short_name
from gradinspect.analyses.structure.name_patterns import matching_names, no_such_name
from gradinspect.graph import Graph, Origin, Record, SavedKind, SavedStatus, SavedTensor, SavedValue, source_of
from gradinspect.units import format_tensor


class SavedRow(Record, frozen=True, kw_only=True):
    """One saved value, with everything a user may want to see or filter by."""

    node: int
    node_name: str
    attribute: str  # "_saved_self", "saved_tensors[1]"
    kind: SavedKind
    value: str  # "f32[2, 3]" for a tensor, else the value itself
    num_bytes: int | None = None  # of the whole storages it holds, without parameters; None if it is not a tensor
    own_bytes: int = 0  # of those that no earlier row holds; all rows add up to the bytes held
    weight_bytes: int = 0  # of parameters and buffers that no earlier row saves: in memory anyway
    shared_with: int | None = None  # the node whose row counts a storage of this one
    status: SavedStatus | None = None
    status_detail: str = ""  # "at version 3, expected 2"
    origin: Origin | None = None
    origin_name: str | None = None
    module: str | None = None
    source: str | None = None  # "model.py:41"
    module_name: str | None = None  # as it is shown: "model.4" for the path "4"


class SavedFilter(Record, frozen=True, kw_only=True):
    """Which rows to keep; all filters that are set must hold. They are shell patterns: `*`, `?`, `[...]`."""

    node: str | None = None  # matches the node's class
    name: str | None = None  # matches the attribute, or the saved parameter or variable
    status: str | None = None
    kind: str | None = None


SAVED_FIELDS: Final[Fields[SavedRow]] = {
    "attribute": lambda row: (row.attribute, row.attribute.removeprefix("_saved_")),
    "bytes": lambda row: (row.num_bytes,),
    "class": lambda row: (row.node_name,),
    "kind": lambda row: (row.kind,),
    "line": lambda row: (row.source,),
    "module": lambda row: (row.module, row.module_name),
    "name": lambda row: (row.origin_name,),
    "origin": lambda row: (row.origin,),
    "status": lambda row: (row.status,),
    "value": lambda row: (row.value,),
}  # fmt: skip


def saved_rows(graph: Graph) -> tuple[SavedRow, ...]:
    """List every saved value, in the order of the nodes."""
    table = _Table(graph)
    return tuple(table.row(node_id, value) for node_id, node in enumerate(graph.nodes) for value in node.saved)


def saved_rows_of(graph: Graph, node_id: int) -> tuple[SavedRow, ...]:
    """List the saved values of one node, with all of their bytes, even if shared."""
    table = _Table(graph)
    return tuple(table.row(node_id, value) for value in graph.nodes[node_id].saved)


class _Table:
    """Makes the rows of one table; the first row that saves a storage counts it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.origins = origins_of_saved(graph)
        self.first_savers: dict[int, int] = {}

    def row(self, node_id: int, value: SavedValue) -> SavedRow:
        storages = tuple(dict.fromkeys(storages_of(value)))
        held = [storage for storage in storages if self.origins[storage] not in IN_MEMORY_ANYWAY]
        weights = [storage for storage in storages if self.origins[storage] in IN_MEMORY_ANYWAY]
        shared = [self.first_savers[storage] for storage in held if storage in self.first_savers]
        own_bytes, weight_bytes = self._first_saved(held), self._first_saved(weights)
        self.first_savers.update((storage, node_id) for storage in storages if storage not in self.first_savers)
        return _row(
            self.graph,
            node_id,
            value,
            num_bytes=sum(self.graph.storages[storage].num_bytes for storage in held) if storages else None,
            own_bytes=own_bytes,
            weight_bytes=weight_bytes,
            shared_with=shared[0] if shared else None,
        )

    def _first_saved(self, storages: Sequence[int]) -> int:
        return sum(self.graph.storages[storage].num_bytes for storage in storages if storage not in self.first_savers)


def _row(graph: Graph, node_id: int, value: SavedValue, **counted: int | None) -> SavedRow:
    node = graph.nodes[node_id]
    origin, origin_name = _origin(graph, value)
    module = None if node.module is None else graph.modules[node.module].path
    return SavedRow(
        node=node_id,
        node_name=node.name,
        attribute=value.name if value.index is None else f"{value.name}[{value.index}]",
        kind=value.kind,
        value=_value_text(value),
        status=value.status,
        status_detail=_status_detail(value),
        origin=origin,
        origin_name=origin_name,
        module=module,
        module_name=None if module is None else short_name(module, None, graph.model_name),
        source=source_of(graph, node),
        **counted,  # type: ignore[arg-type]  # only counts of bytes
    )


def _origin(graph: Graph, value: SavedValue) -> tuple[Origin | None, str | None]:
    """Return the origin of a value; a view of a parameter (`weight.t()`) counts as the parameter, as do its bytes."""
    if value.tensor is None or value.tensor.storage is None:
        return value.origin, value.origin_name
    storage = graph.storages[value.tensor.storage]
    if storage.origin in {"parameter", "buffer"}:
        return storage.origin, value.origin_name or storage.name
    return value.origin, value.origin_name


def _value_text(value: SavedValue) -> str:
    if value.tensor is not None:
        return _tensor_text(value.tensor)
    match value.kind:
        case "tensor":
            return ""  # freed, packed or unreadable: the status says so
        case "str":
            return repr(value.value)
        case "tuple" if isinstance(value.value, tuple):
            return f"({', '.join(map(str, value.value))})"
        case _:
            return str(value.value)


def _tensor_text(tensor: SavedTensor) -> str:
    text = format_tensor(tensor.info)
    return text if tensor.strides is None else f"{text} strides ({', '.join(map(str, tensor.strides))})"


def _status_detail(value: SavedValue) -> str:
    match value.status:
        case "modified" if value.tensor is not None and value.tensor.expected_version is not None:
            return f"at version {value.tensor.version}, expected {value.tensor.expected_version}"
        case "packed":
            hook = f"by hook {value.unpack_hook}" if value.unpack_hook else "by a hook"
            return f"{hook} as {value.packed_as}" if value.packed_as else hook
        case _:
            return ""


def filter_rows(rows: Sequence[SavedRow], wanted: SavedFilter) -> tuple[SavedRow, ...]:
    """Keep the rows that match all filters, possibly none.

    Raises:
        GradInspectError: A pattern matches nothing, or a status or kind is unknown.
    """
    _check_word(wanted.status, get_args(SavedStatus), "status")
    _check_word(wanted.kind, get_args(SavedKind), "kind")
    nodes = _matches(wanted.node, {row.node_name for row in rows}, "node class with saved attributes")
    names = _matches(wanted.name, {name for row in rows for name in _names(row)}, "saved attribute or name")
    return tuple(
        row
        for row in rows
        if (nodes is None or row.node_name in nodes)
        and (names is None or not names.isdisjoint(_names(row)))
        and wanted.status in {None, row.status}
        and wanted.kind in {None, row.kind}
    )


def _check_word(word: str | None, words: Collection[str], noun: str) -> None:
    if word is not None and word not in words:
        raise no_such_name(word, words, noun)


def _matches(pattern: str | None, names: Collection[str], noun: str) -> frozenset[str] | None:
    return None if pattern is None else matching_names(pattern, names, noun)


def _names(row: SavedRow) -> Iterator[str]:
    yield row.attribute
    yield row.attribute.removeprefix("_saved_")
    if row.origin_name is not None:
        yield row.origin_name
