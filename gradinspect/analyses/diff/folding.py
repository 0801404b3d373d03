"""Fold changes that are alike: the same operator, in modules that differ by their index only.

What comes in: added, removed and changed nodes. What goes out: rows such as `h.0-11.attn: + CloneBackward0 x12`.

NOTE [Numbers of a row]
Where only numbers differ, as the rows that each expert got, changes are one row, too: `[18..39, 32]`; and so where a
change names what is in its module, whose number is that of the module: `h.0-11.norm.weight → None`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from gradinspect.analyses.diff.reading import Reading
from gradinspect.analyses.diff.records import ChangedNode, ChangedRow, Detail, RowKind
from gradinspect.analyses.structure.name_folding import (
    NUMBER,
    OddOne,
    alike,
    fold_names,
    name_by_indices,
    name_of_all,
    named_odd_one,
    numbers_between,
    without_numbers,
)
from gradinspect.graph import Node, TensorInfo, source_of

_WITH_NUMBERS: Final = ("shape", "saved")  # those in a line of code are not sizes
_WITH_NAMES: Final = ("inputs", "module")


class _Change(NamedTuple):
    """One node, or all nodes of a module that only one graph has."""

    path: str | None  # of its module; None outside
    what: str
    is_module: bool
    details: tuple[Detail, ...]
    held_bytes: int
    nodes: tuple[int, ...]
    node: Node
    line: str
    other: int | None = None  # of a changed node: its id in A


def fold_missing(
    reading: Reading, missing: Sequence[int], kind: RowKind, *, lost_calls: set[int]
) -> Iterator[ChangedRow]:
    """Fold the nodes that only one graph has, those of a missing module together.

    Args:
        reading: The graph that has them.
        missing: Their ids, in the order of the forward pass.
        kind: Whether this is A ("removed") or B ("added").
        lost_calls: The module calls that only this graph has.
    """
    sign = 1 if kind == "added" else -1
    changes: list[_Change] = []
    whole: dict[int, list[int]] = defaultdict(list)
    for node_id in missing:
        node = reading.graph.nodes[node_id]
        call = _outermost_lost(reading, node.module, lost_calls)
        if call is None:
            changes.append(_missing(reading, _path(reading, node), node.name, [node_id], sign))
        else:
            whole[call].append(node_id)
    for call, nodes in whole.items():
        found = reading.calls[call]
        changes.append(_missing(reading, found.path, found.class_name, nodes, sign)._replace(is_module=True))
    for path, same in _grouped(changes):
        ids = tuple(node_id for change in same for node_id in change.nodes)
        row = _row(kind, path, same)
        yield msgspec.structs.replace(
            row, nodes_before=() if kind == "added" else ids, nodes_after=ids if kind == "added" else ()
        )


def _missing(reading: Reading, path: str | None, what: str, nodes: Sequence[int], sign: int) -> _Change:
    node = reading.graph.nodes[nodes[0]]
    return _Change(
        path=path,
        what=what,
        is_module=False,
        details=(),
        held_bytes=sign * sum(reading.held[node_id] for node_id in nodes),
        nodes=tuple(nodes),
        node=node,
        line=source_of(reading.graph, node) or "",
    )


def fold_changed(before: Reading, after: Reading, changed: Iterable[ChangedNode]) -> Iterator[ChangedRow]:
    """Fold the nodes that are in both graphs and differ."""
    changes = []
    for change in changed:
        node = after.graph.nodes[change.node_after]
        old = before.graph.nodes[change.node_before]
        line = source_of(after.graph, node) or ""
        path = _path(after, node)
        ids = (change.node_after,)
        changes.append(
            _Change(path, old.name, False, change.details, change.held_bytes, ids, node, line, change.node_before)
        )
    for path, same in _grouped(changes):
        row = _row("changed", path, same)
        old_ids = tuple(change.other for change in same if change.other is not None)
        yield msgspec.structs.replace(row, nodes_before=old_ids, nodes_after=tuple(change.nodes[0] for change in same))


def _row(kind: RowKind, path: str | None, same: Sequence[_Change]) -> ChangedRow:
    first = same[0]
    return ChangedRow(
        kind=kind,
        module=path or "",
        is_outside=path is None,
        what=first.what,
        is_module=first.is_module,
        details=tuple(map(_together, *(change.details for change in same))),
        count=len(same),
        num_nodes=sum(len(change.nodes) for change in same),
        held_bytes=sum(change.held_bytes for change in same),
        info=None if first.is_module else _common_output(same),
        line=first.line,
        odd_one=_odd_one(same),
    )


def _odd_one(same: Sequence[_Change]) -> OddOne | None:
    """Name the module that changed unlike the others: in its bytes, or else in the sizes that differ."""
    names = [change.path or "" for change in same]
    sizes = ([_num_elements(detail.after) for detail in details]
             for details in zip(*(change.details for change in same), strict=True)
             if details[0].field in _WITH_NUMBERS)  # fmt: skip
    found = (named_odd_one(names, values) for values in ([abs(change.held_bytes) for change in same], *sizes))
    return next(filter(None, found), None)


def _num_elements(text: str) -> int:
    return math.prod(map(int, NUMBER.findall(text)))


def _common_output(same: Sequence[_Change]) -> TensorInfo | None:
    infos = {change.node.forward_outputs[:1] for change in same}
    return next(iter(infos))[0] if len(infos) == 1 and () not in infos else None


def _grouped(changes: Iterable[_Change]) -> Iterator[tuple[str | None, list[_Change]]]:
    """Group changes that are alike, and name the modules of each group: NOTE [Numbers of a row]."""
    for same in _by(changes, lambda change: tuple(map(_without_numbers, change.details))):
        yield name_of_all(change.path for change in same), same


def _by(changes: Iterable[_Change], look: Callable[[_Change], Hashable]) -> Iterable[list[_Change]]:
    return alike(
        changes,
        lambda change: (change.path, *(name for detail in change.details for name in _names(detail))),
        lambda change: (change.what, change.is_module, look(change)),
    )


def _names(detail: Detail) -> Iterator[str | None]:
    """Yield what a change names on both sides: a parameter of a module, or a module. A class has no dot in its name."""
    for text in (detail.before, detail.after):
        yield text if detail.field in _WITH_NAMES and "." in text else None


def _without_numbers(detail: Detail) -> Detail:
    if detail.field in _WITH_NUMBERS:
        return Detail(detail.field, detail.name, without_numbers(detail.before), without_numbers(detail.after))
    before, after = _names(detail)
    return Detail(detail.field, detail.name, "" if before else detail.before, "" if after else detail.after)


def _together(*details: Detail) -> Detail:
    """Write details that differ in numbers as one: the least and the greatest of each, or the names of all."""
    write = numbers_between if details[0].field in _WITH_NUMBERS else name_by_indices
    texts = ([getattr(detail, side) for detail in details] for side in ("before", "after"))
    return Detail(
        details[0].field, details[0].name, *(write(side) if len(set(side)) > 1 else side[0] for side in texts)
    )


def _outermost_lost(reading: Reading, call: int | None, lost: set[int]) -> int | None:
    """Find the outermost call around a node that only this graph has, as far as they are nested without gaps."""
    found = None
    while call is not None and call in lost:
        found, call = call, reading.calls[call].parent
    return found


def _path(reading: Reading, node: Node) -> str | None:
    return None if node.module is None else reading.calls[node.module].path


def fold_leaves(names: Iterable[str], whole: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Fold the names of leaves; those of a module that only one graph has are one: `h.3.*`."""
    modules = [path for path in whole if path]
    inside: dict[str, list[str]] = {}
    others = []
    for name in names:
        module = next((path for path in modules if name.startswith(f"{path}.")), None)
        if module is None:
            others.append(name)
        else:
            inside.setdefault(module, []).append(name)
    for label, group in fold_names(inside):
        yield f"{label}.*", [name for module in group for name in inside[module]]
    yield from fold_names(others)
