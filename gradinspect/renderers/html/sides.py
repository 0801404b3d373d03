"""The data of the page that shows two graphs side by side.

What comes in: two graphs, what differs, and both as one graph. What goes out: JSON. The scopes are those of the united
graph, so that what is the same in both is in one row; equal texts and equal sides of rows are stored once.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gradinspect.analyses.diff.records import GraphDiff, ModuleChange
from gradinspect.analyses.diff.union import Union, UnitedNumbers
from gradinspect.analyses.memory.saved_rows import SavedRow, saved_rows
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.call_names import leaf_shown, shown_path
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.analyses.structure.node_names import class_name_of
from gradinspect.graph import Graph, Node, Record, argument_name, frame_of, source_of
from gradinspect.renderers.diff_words import MODULE_WORDS, describe, how_far
from gradinspect.renderers.html.nodes import Texts
from gradinspect.renderers.html.tree import page_scopes
from gradinspect.units import brief, format_tensor

MARKS: Final = ("", "added", "removed", "changed")  # a status as a number
MAX_TEXT = 300  # characters of a value


class PageSide(Record, frozen=True, kw_only=True, array_like=True):
    """One node as one of the graphs has it, as indices of texts. It has no number, so equal ones are one."""

    name: int
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]  # those that are not leaves: "mat1: TanhBackward0", "other: None"
    leaves: tuple[tuple[int, int], ...]  # name, status
    saved: tuple[int, ...]
    line: int
    code: int
    bytes: int


class PageRow(Record, frozen=True, kw_only=True, array_like=True):
    """One node of the united graph."""

    before: tuple[int, int] | None  # its number in A, index of its side
    after: tuple[int, int] | None
    status: int  # of `MARKS`
    details: tuple[int, ...] = ()  # texts


class PageCall(Record, frozen=True, kw_only=True, array_like=True):
    """One module call of the united graph."""

    before: int  # text: its path; -1 if it is not there
    after: int
    class_name: int
    status: int  # of `MARKS`
    word: int  # text: "renamed", "moved"; "" for most
    first: int  # its first node in the united graph; -1 if it has none


class SidesData(NamedTuple):
    """What the page shows as rows."""

    scopes: Sequence[Record]
    rows: Sequence[PageRow]
    sides: Sequence[PageSide]
    calls: Sequence[PageCall]


def page_sides(before: Graph, after: Graph, diff: GraphDiff, union: Union, texts: Texts) -> SidesData:
    """List the scopes, the rows and the module calls."""
    scopes, alone = page_scopes(union.graph, fold_graph(union.graph))
    statuses = _statuses_of_leaves(union)
    sides: dict[PageSide, int] = {}
    writers = [_SideWriter(graph, texts, one, sides) for graph, one in zip((before, after), statuses, strict=True)]
    details = _details(diff, texts)
    rows = [
        _row(numbers, status, writers, details, is_alone=place in alone)
        for place, (numbers, status) in enumerate(zip(union.nodes, union.statuses, strict=True))
    ]
    return SidesData(scopes, rows, list(sides), _calls(before, after, diff, union, texts))


def _row(
    numbers: UnitedNumbers,
    status: str,
    writers: "Sequence[_SideWriter]",
    details: dict[UnitedNumbers, list[int]],
    *,
    is_alone: bool,
) -> PageRow:
    mine, theirs = (
        None if number is None else (number, writer.side(number, is_alone=is_alone))
        for number, writer in zip(numbers, writers, strict=True)
    )
    known = tuple(details.get(numbers, ()))
    return PageRow(before=mine, after=theirs, status=MARKS.index(status), details=known)


def _statuses_of_leaves(union: Union) -> tuple[dict[int, int], dict[int, int]]:
    """Return the status of each leaf that differs, by its number in A and by that in B."""
    mine, theirs = {}, {}
    for place, (numbers, status) in enumerate(zip(union.nodes, union.statuses, strict=True)):
        if status and union.graph.nodes[place].leaf is not None:
            if numbers.before is not None:
                mine[numbers.before] = MARKS.index(status)
            if numbers.after is not None:
                theirs[numbers.after] = MARKS.index(status)
    return mine, theirs


def _details(diff: GraphDiff, texts: Texts) -> dict[UnitedNumbers, list[int]]:
    """Say what differs of each node that is in both graphs, its first values included."""
    found: dict[UnitedNumbers, list[int]] = {}
    for change in diff.changed:
        lines = [texts.place(brief(describe(detail), MAX_TEXT)) for detail in change.details]
        found[UnitedNumbers(change.node_before, change.node_after)] = lines
    if diff.values is not None:
        firsts = (("forward", diff.values.first_forward), ("backward", diff.values.first_backward))
        for direction, first in firsts:
            if first is not None:
                words = f"first value that differs in {direction}: {how_far(first.distance)}"
                found.setdefault(UnitedNumbers(first.node_before, first.node_after), []).append(texts.place(words))
    return found


class _SideWriter:
    """Writes the nodes of one of the graphs."""

    def __init__(self, graph: Graph, texts: Texts, statuses: dict[int, int], sides: dict[PageSide, int]) -> None:
        self.graph = graph
        self._texts = texts
        self._statuses = statuses
        self._sides = sides
        self._held = held_bytes_by_node(graph)
        self._saved: dict[int, list[SavedRow]] = {}
        for row in saved_rows(graph):
            self._saved.setdefault(row.node, []).append(row)

    def side(self, number: int, *, is_alone: bool) -> int:
        """Return the index of a node's side. A node that is the only one of its module call names the module."""
        node, place = self.graph.nodes[number], self._texts.place
        frame = frame_of(self.graph, node)
        side = PageSide(
            name=place(self._title(node, is_alone=is_alone)),
            outputs=tuple(place("none" if one is None else format_tensor(one)) for one in node.forward_outputs),
            inputs=tuple(map(place, self._inputs(number))),
            leaves=tuple(self._leaves(number)),
            saved=tuple(place(_saved_words(row)) for row in self._saved.get(number, ())),
            line=place(source_of(self.graph, node) or ""),
            code=place("" if frame is None else brief(frame.code, MAX_TEXT)),
            bytes=self._held[number],
        )
        return self._sides.setdefault(side, len(self._sides))

    def _title(self, node: Node, *, is_alone: bool) -> str:
        name = class_name_of(node)
        if node.leaf is not None:
            return f"{name}  {leaf_shown(self.graph, node.leaf)}".rstrip()
        if node.module is None or not is_alone:
            return name
        call = self.graph.modules[node.module]
        return f"{name}  {shown_path(call.path, self.graph.model_name)} {call.class_name}"

    def _inputs(self, number: int) -> Iterator[str]:
        node = self.graph.nodes[number]
        for position, edge in enumerate(node.next_edges):
            target = None if edge is None else self.graph.nodes[edge.next_node]
            if target is None or target.leaf is None:
                yield self._labeled(number, position, "None" if target is None else class_name_of(target))

    def _leaves(self, number: int) -> Iterator[tuple[int, int]]:
        for position, edge in enumerate(self.graph.nodes[number].next_edges):
            leaf = None if edge is None else self.graph.nodes[edge.next_node].leaf
            if edge is not None and leaf is not None:
                name = leaf_shown(self.graph, leaf) or self._labeled(number, position, "a leaf")
                words = f"{brief(name, MAX_TEXT)}  {format_tensor(leaf.info)}"
                yield self._texts.place(words), self._statuses.get(edge.next_node, 0)

    def _labeled(self, number: int, position: int, what: str) -> str:
        name = argument_name(self.graph, self.graph.nodes[number], position)
        return f"{name or f'input {position}'}: {what}"


def _saved_words(row: SavedRow) -> str:
    status = " ".join(filter(None, (row.status if row.status != "live" else "", row.status_detail)))
    origin = " ".join(filter(None, (row.origin, row.shown_origin)))
    return brief(f"{row.attribute}: {'  '.join(filter(None, (row.value, status, origin)))}", MAX_TEXT)


def _calls(before: Graph, after: Graph, diff: GraphDiff, union: Union, texts: Texts) -> list[PageCall]:
    changes: dict[tuple[str, str], ModuleChange] = {
        (change.before, change.after): change for change in diff.module_changes if change.kind not in MODULE_WORDS
    }
    firsts = _first_nodes(union.graph)

    def call(place: int, numbers: UnitedNumbers) -> PageCall:
        old = None if numbers.before is None else before.modules[numbers.before]
        new = None if numbers.after is None else after.modules[numbers.after]
        change = None if old is None or new is None else changes.get((old.path, new.path))
        status = "added" if old is None else "removed" if new is None else "changed" if change else ""
        both = dict.fromkeys(one.class_name for one in (old, new) if one is not None)
        return PageCall(
            before=-1 if old is None else texts.place(shown_path(old.path, before.model_name)),
            after=-1 if new is None else texts.place(shown_path(new.path, after.model_name)),
            class_name=texts.place(" → ".join(both)),
            status=MARKS.index(status),
            word=texts.place("" if change is None else change.kind),
            first=firsts.get(place, -1),
        )

    return [call(place, numbers) for place, numbers in enumerate(union.calls)]


def _first_nodes(graph: Graph) -> dict[int, int]:
    """Return the first node in each module call."""
    found: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        call = node.module
        while call is not None and call not in found:
            found[call] = number
            call = graph.modules[call].parent
    return found
