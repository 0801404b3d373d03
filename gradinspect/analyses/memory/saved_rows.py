"""The saved-attribute table: what every node keeps for backward, one row per saved value."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from msgspec.structs import replace

from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, origins_of_saved, storages_of
from gradinspect.analyses.selection.name_patterns import matching_names, no_such_name
from gradinspect.analyses.selection.rows import Fields
from gradinspect.analyses.structure.call_names import short_name, shown_path
from gradinspect.analyses.structure.name_folding import (
    OddOne,
    alike,
    name_of_all,
    named_odd_one,
    numbers_between,
    without_numbers,
)
from gradinspect.graph import Graph, Origin, Record, SavedKind, SavedStatus, SavedTensor, SavedValue, source_of
from gradinspect.units import format_tensor

NEARLY_ALL: Final = 0.99  # of the bytes: the rows after these are many and small
KeptByEager: TypeAlias = Literal["yes", "no", "not known"]


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
    kept_by_eager: KeptByEager | None = None  # of a tensor inside a compiled node
    shown_origin: str | None = None  # origin_name as it is shown: "model.4.weight" for "4.weight"

    @property
    def is_scalar(self) -> bool:
        """Whether it is a tensor of no dimension, such as the `total_weight` of a loss: `f32[]`."""
        return self.kind == "tensor" and "[]" in self.value


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
    "eager": lambda row: (row.kept_by_eager,),
    "kind": lambda row: (row.kind,),
    "line": lambda row: (row.source,),
    "module": lambda row: (row.module, row.module_name),
    "name": lambda row: (row.origin_name, row.shown_origin),
    "origin": lambda row: (row.origin,),
    "status": lambda row: (row.status,),
    "value": lambda row: (row.value,),
}  # fmt: skip


def saved_rows(graph: Graph) -> tuple[SavedRow, ...]:
    """List every saved value, in the order of the nodes."""
    table = SavedTable(graph)
    return tuple([table.row(node_id, value) for node_id, node in enumerate(graph.nodes) for value in node.saved])


def saved_rows_of(graph: Graph, node_id: int) -> tuple[SavedRow, ...]:
    """List the saved values of one node, with all of their bytes, even if shared."""
    table = SavedTable(graph)
    return tuple(table.row(node_id, value) for value in graph.nodes[node_id].saved)


class AlikeRows(NamedTuple):
    """Tensors that equal blocks save in the same place, as one row."""

    row: SavedRow  # the first; its bytes are those of all, its module stands for all
    times: int
    odd_one: OddOne | None = None  # the module whose tensor has far more or fewer bytes


def folded_tensors(rows: Sequence[SavedRow], *, by_line: bool = True, by_origin: bool = True) -> list[AlikeRows]:
    """Return the tensors among some rows, those of equal blocks as one row, the largest first.

    Rows are alike if they say the same but for sizes, in modules whose names differ in an index only; what compiled
    code keeps is named after what made it, and its place among all that is kept says nothing.

    Args:
        rows: Of the table.
        by_line: Whether rows of different lines say different things: not where lines are not shown.
        by_origin: The same of rows of tensors with different names, or that come from elsewhere.
    """

    def look(row: SavedRow) -> tuple[object, ...]:
        is_shared = row.shared_with is not None
        attribute = row.attribute if row.kept_by_eager is None else _without_index(row.attribute)
        what = row.node_name, attribute, without_numbers(row.value), row.kept_by_eager
        origin = row.origin if by_origin else None
        return *what, row.status, origin, row.source if by_line else None, is_shared

    tensors = (row for row in rows if row.kind == "tensor")
    groups = alike(tensors, lambda row: (row.module, row.origin_name if by_origin else None), look)
    folded = [AlikeRows(_together(group), len(group), _odd_one(group)) for group in groups]
    return sorted(folded, key=lambda one: (-one.row.own_bytes, -(one.row.num_bytes or 0), one.row.node))


def num_of_nearly_all(folded: Sequence[AlikeRows]) -> int:
    """Return how many of the first rows hold nearly all of the bytes, the largest first."""
    sums = list(accumulate(one.row.own_bytes for one in folded))
    return bisect_left(sums, NEARLY_ALL * sums[-1]) + 1 if sums and sums[-1] else 0


def _odd_one(rows: Sequence[SavedRow]) -> OddOne | None:
    return named_odd_one([row.module_name or "" for row in rows], [row.num_bytes or 0 for row in rows])


def _together(rows: Sequence[SavedRow]) -> SavedRow:
    if len(rows) == 1:
        return rows[0]
    attribute = rows[0].attribute
    return replace(
        rows[0],
        attribute=attribute if len({row.attribute for row in rows}) == 1 else _without_index(attribute),
        value=numbers_between([row.value for row in rows]),
        num_bytes=sum(row.num_bytes or 0 for row in rows),
        own_bytes=sum(row.own_bytes for row in rows),
        weight_bytes=sum(row.weight_bytes for row in rows),
        module=name_of_all(row.module for row in rows),
        module_name=name_of_all(row.module_name for row in rows),
        origin_name=name_of_all(row.origin_name for row in rows),
        shown_origin=name_of_all(row.shown_origin for row in rows),
        source=rows[0].source if len({row.source for row in rows}) == 1 else None,
    )


def _without_index(attribute: str) -> str:
    return attribute.partition("[")[0]


class _Bytes(NamedTuple):
    """What a row says of storages: the fields of `SavedRow` with these names."""

    num_bytes: int | None = None
    own_bytes: int = 0
    weight_bytes: int = 0
    shared_with: int | None = None


_NO_STORAGE: Final = _Bytes()


class SavedTable:
    """Makes the rows of one table; the first row that saves a storage counts it."""

    def __init__(self, graph: Graph) -> None:
        """Find where storages come from."""
        self.graph = graph
        self.origins = origins_of_saved(graph)
        self.first_savers: dict[int, int] = {}
        self._modules: dict[int | None, tuple[str | None, str | None]] = {None: (None, None)}
        self._sources: dict[int | None, str | None] = {None: None}
        self._tensors: dict[int, str] = {}  # the text of each description, by identity, as most tensors share theirs

    def row(self, node_id: int, value: SavedValue) -> SavedRow:
        """Make the row of one value; rows are made in the order of the nodes."""
        node = self.graph.nodes[node_id]
        storages = storages_of(value)
        num_bytes, own_bytes, weight_bytes, shared_with = self._bytes(node_id, storages) if storages else _NO_STORAGE
        origin, origin_name = _origin(self.graph, value)
        if node.module not in self._modules:
            path = self.graph.modules[node.module].path  # type: ignore[index]  # None is there
            self._modules[node.module] = path, short_name(path, None, self.graph.model_name)
        frame = node.frame if value.frame is None else value.frame
        if frame not in self._sources:
            self._sources[frame] = source_of(self.graph, replace(node, frame=frame))
        module, module_name = self._modules[node.module]
        return SavedRow(
            node=node_id,
            node_name=node.name,
            attribute=_attribute(value),
            kind=value.kind,
            value=_value_text(value) if value.tensor is None else self._tensor_text(value.tensor),
            num_bytes=num_bytes,
            own_bytes=own_bytes,
            weight_bytes=weight_bytes,
            shared_with=shared_with,
            status=value.status,
            status_detail=_status_detail(value),
            origin=origin,
            origin_name=origin_name,
            module=module,
            source=self._sources[frame],
            module_name=module_name,
            shown_origin=origin_name and shown_path(origin_name, self.graph.model_name),
            kept_by_eager=_kept_by_eager(value) if node.kind == "compiled" and storages else None,
        )

    def _tensor_text(self, tensor: SavedTensor) -> str:
        text = self._tensors.get(id(tensor.info))
        if text is None:
            text = self._tensors[id(tensor.info)] = format_tensor(tensor.info)
        return text if tensor.strides is None else f"{text} strides ({', '.join(map(str, tensor.strides))})"

    def _bytes(self, node_id: int, storages: Sequence[int]) -> _Bytes:
        """Count the storages of a value, each once."""
        records, first_savers = self.graph.storages, self.first_savers
        num_bytes = own_bytes = weight_bytes = 0
        shared_with = None
        for storage in dict.fromkeys(storages):
            size, saver = records[storage].num_bytes, first_savers.get(storage)
            if saver is None:
                first_savers[storage] = node_id
            if self.origins[storage] in IN_MEMORY_ANYWAY:
                weight_bytes += size if saver is None else 0
                continue
            num_bytes += size
            own_bytes += size if saver is None else 0
            shared_with = saver if shared_with is None else shared_with
        return _Bytes(num_bytes, own_bytes, weight_bytes, shared_with)


def _origin(graph: Graph, value: SavedValue) -> tuple[Origin | None, str | None]:
    """Return the origin of a value; a view of a parameter (`weight.t()`) counts as the parameter, as do its bytes."""
    if value.tensor is None or value.tensor.storage is None:
        return value.origin, value.origin_name
    storage = graph.storages[value.tensor.storage]
    if storage.origin in IN_MEMORY_ANYWAY:
        return storage.origin, value.origin_name or storage.name
    return value.origin, value.origin_name


def _attribute(value: SavedValue) -> str:
    """Name what was saved: inside a compiled node the operator that made it."""
    name = value.operator or value.name
    return name if value.index is None else f"{name}[{value.index}]"


def _kept_by_eager(value: SavedValue) -> KeptByEager:
    return "not known" if value.kept_by_eager is None else "yes" if value.kept_by_eager else "no"


def _value_text(value: SavedValue) -> str:
    match value.kind:
        case "tensor":
            return ""  # freed, packed or unreadable: the status says so
        case "str":
            return repr(value.value)
        case "tuple" if isinstance(value.value, tuple):
            return f"({', '.join(map(str, value.value))})"
        case _:
            return str(value.value)


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
    yield from filter(None, dict.fromkeys((row.origin_name, row.shown_origin)))
