"""The list of differences on the page that shows two graphs side by side: what it says, and where each one is.

What comes in: what differs, and both graphs as one. What goes out: sections of entries, each with the nodes and module
calls of the united graph that it is about.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Final

from gradinspect.analyses.diff.leaves import UNNAMED
from gradinspect.analyses.diff.records import ChangedRow, GraphDiff, LeafChange, ModuleChange, ValueDiff
from gradinspect.analyses.diff.union import Union
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.analyses.structure.name_folding import alike, name_of_all
from gradinspect.graph import Record, consumers
from gradinspect.renderers.diff_words import (
    LEAF_WORDS,
    MODULE_WORDS,
    SIGNS,
    ChangedLine,
    apart_from_lines,
    change_of,
    class_words,
    described,
    first_values,
    how_far,
    in_order_of_modules,
    names_of_leaves,
    place_of,
    value_summary,
)
from gradinspect.units import brief, escape_control, format_change, format_count, format_tensor

MAX_ENTRIES = 1_000  # of one section
MAX_PLACES = 500  # of one entry
MAX_TEXT = 300
LEAF_SIGNS: Final = {"lost": "-", "frozen": "-", "gained": "+", "unfrozen": "+"}
MODULE_SIGNS: Final = {"removed": "-", "added": "+"}


class PageDifference(Record, frozen=True, kw_only=True):
    """One difference."""

    sign: str  # "+", "-", "~"; "" for a remark
    words: str
    details: tuple[str, ...] = ()
    bytes: str = ""
    line: str = ""
    nodes: tuple[int, ...] = ()  # where it is, in the united graph
    calls: tuple[int, ...] = ()


class Section(Record, frozen=True, kw_only=True):
    """Differences under one heading."""

    title: str
    entries: tuple[PageDifference, ...]


def page_differences(diff: GraphDiff, union: Union) -> list[Section]:
    """List what differs: classes if the rest is long, then by module, then modules, leaves and values."""
    lister = _Lister(diff, union)
    found = [*lister.classes(), *lister.rows(), *lister.modules(), *lister.leaves(), *lister.values()]
    return [_escaped(section) for section in found if section.entries]


class _Lister:
    def __init__(self, diff: GraphDiff, union: Union) -> None:
        self.diff, self.union = diff, union
        self._before = {numbers.before: place for place, numbers in enumerate(union.nodes)}
        self._after = {numbers.after: place for place, numbers in enumerate(union.nodes)}
        self._uses = consumers(union.graph)
        self._calls: dict[tuple[str, str], list[int]] = {}
        for place, numbers in enumerate(union.calls):
            kind = "added" if numbers.before is None else "removed" if numbers.after is None else ""
            self._calls.setdefault((kind, union.graph.modules[place].path), []).append(place)

    def classes(self) -> Iterator[Section]:
        if words := class_words(self.diff):
            yield Section(title="classes", entries=(PageDifference(sign="", words=words),))

    def rows(self) -> Iterator[Section]:
        rows, lines = apart_from_lines(self.diff.rows)
        shown = rows[:MAX_ENTRIES]
        for place, same in groupby(in_order_of_modules(sorted(shown, key=_rank)), key=partial(place_of, self.diff)):
            yield Section(title=place, entries=tuple(map(self._row, same)))
        if len(rows) > MAX_ENTRIES:
            more = format_count(len(rows) - MAX_ENTRIES, "more row")
            yield Section(
                title="", entries=(PageDifference(sign="", words=f"{more}: gradinspect diff --full prints all."),)
            )

        if lines:
            yield Section(title="lines", entries=tuple(map(self._line, lines[:MAX_ENTRIES])))

    def _line(self, line: ChangedLine) -> PageDifference:
        return PageDifference(
            sign=SIGNS["changed"],
            words=format_count(len(line.nodes), "node"),
            details=(brief(change_of(line), MAX_TEXT),),
            line=line.place,
            nodes=tuple(self._after[number] for number in line.nodes[:MAX_PLACES]),
        )

    def _row(self, row: ChangedRow) -> PageDifference:
        times = f" ×{row.count:,}" if row.count > 1 else ""
        size = format_count(row.num_nodes, "node") if row.is_module else ""
        info = format_tensor(row.info) if row.info is not None and row.kind != "changed" else ""
        nodes = self._places(row)
        return PageDifference(
            sign=SIGNS[row.kind],
            words="  ".join(filter(None, (f"{row.what}{times}", size, info))),
            details=(*(brief(words, MAX_TEXT) for words in described(self.diff, row)), *_links_note(row)),
            bytes=format_change(row.held_bytes) if row.held_bytes else "",
            line=row.line,
            nodes=() if row.is_module else tuple(nodes[:MAX_PLACES]),
            calls=tuple(self._outermost_alone(nodes)[:MAX_PLACES]) if row.is_module else (),
        )

    def _places(self, row: ChangedRow) -> list[int]:
        if row.nodes_after:
            return [self._after[number] for number in row.nodes_after]
        return [self._before[number] for number in row.nodes_before]

    def _outermost_alone(self, nodes: Sequence[int]) -> list[int]:
        """Find the outermost calls around nodes that only one of the graphs has."""
        found: dict[int, None] = {}
        for node in nodes:
            outer, call = None, self.union.graph.nodes[node].module
            while call is not None and None in self.union.calls[call]:
                outer, call = call, self.union.graph.modules[call].parent
            if outer is not None:
                found[outer] = None
        return list(found)

    def modules(self) -> Iterator[Section]:
        groups = alike(
            self.diff.module_changes,
            lambda change: (change.before or None, change.after or None),
            lambda change: (change.kind, change.class_name),
        )
        yield Section(title="modules", entries=tuple(self._modules(same) for same in islice(groups, MAX_ENTRIES)))

    def _modules(self, same: Sequence[ModuleChange]) -> PageDifference:
        """Describe the same change of modules whose names differ in their numbers."""
        kind, class_name = same[0].kind, same[0].class_name
        sides = (
            name_of_all(change.before or None for change in same),
            name_of_all(change.after or None for change in same),
        )
        shown = (shown_path(name, model) for name, model in zip(sides, self.diff.model_names, strict=True) if name)
        names = " → ".join(dict.fromkeys(shown))
        times = f" ×{len(same):,}" if len(same) > 1 else ""
        words = f"{MODULE_WORDS.get(kind, kind)} {names or self.diff.model_names[1]}{times}  {class_name}"
        alone = kind if kind in MODULE_WORDS else ""
        paths = (change.before if kind == "removed" else change.after for change in same)
        calls = [call for path in paths for call in self._calls.get((alone, path), ())]
        return PageDifference(sign=MODULE_SIGNS.get(kind, "~"), words=words, calls=tuple(calls[:MAX_PLACES]))

    def leaves(self) -> Iterator[Section]:
        users: dict[str, list[int]] = {}
        for place, node in enumerate(self.union.graph.nodes):
            if node.leaf is not None and self.union.statuses[place]:
                users.setdefault(node.leaf.name or UNNAMED, []).extend(self._users(place))
        groups: dict[tuple[str, str], list[LeafChange]] = {}
        for change in self.diff.leaf_changes:
            what = f"{change.before} → {change.after}" if change.before or change.after else ""
            groups.setdefault((change.kind, what), []).append(change)
        entries = [
            PageDifference(sign=LEAF_SIGNS.get(kind, "~"), words=_leaf_words(kind, words, names, what),
                  nodes=tuple(node for name in names for node in users.get(name, ()))[:MAX_PLACES])
            for (kind, what), changes in groups.items()
            for words, names in names_of_leaves(self.diff, changes)
        ]  # fmt: skip
        yield Section(title="leaves", entries=tuple(entries[:MAX_ENTRIES]))

    def values(self) -> Iterator[Section]:
        found = self.diff.values
        if found is not None:
            firsts = tuple(self._firsts(found))
            parameters = tuple(
                PageDifference(
                    sign="~",
                    words=f"parameter {shown_path(one.name, self.diff.model_names[1])}: {how_far(one.distance)}",
                    nodes=self._users(self._after[one.node_after]),
                )
                for one in found.parameters[:MAX_ENTRIES]
            )
            remark = PageDifference(sign="", words=f"{value_summary(found)}.")
            yield Section(title="values", entries=(*parameters, *firsts, remark))

    def _firsts(self, values: ValueDiff) -> Iterator[PageDifference]:
        firsts = [first for first in (values.first_forward, values.first_backward) if first is not None]
        for first, (direction, where, distance) in zip(
            firsts, first_values(values, self.diff.model_names[1]), strict=True
        ):
            words = f"first in {direction}: {'  '.join(where)}"
            yield PageDifference(sign="~", words=words, details=(distance,), nodes=(self._after[first.node_after],))

    def _users(self, leaf: int) -> tuple[int, ...]:
        return tuple(use.node for use in self._uses.get(leaf, ()))[:MAX_PLACES]


def _links_note(row: ChangedRow) -> Iterator[str]:
    if row.count > MAX_PLACES:
        yield f"links to {MAX_PLACES:,} of {row.count:,}"


def _leaf_words(kind: str, words: str, names: Sequence[str], what: str) -> str:
    times = f" ×{len(names):,}" if len(names) > 1 else ""
    return f"{LEAF_WORDS[kind]}: {words}{times}  {what}".rstrip()


def _rank(row: ChangedRow) -> tuple[bool, int, int]:
    """Sort what is in one module as in the terminal: what holds most first."""
    return row.kind == "changed", -abs(row.held_bytes), -row.count


def _escaped(section: Section) -> Section:
    return Section(title=escape_control(section.title), entries=tuple(
        PageDifference(
            sign=entry.sign, words=escape_control(entry.words), details=tuple(map(escape_control, entry.details)),
            bytes=entry.bytes, line=escape_control(entry.line), nodes=entry.nodes, calls=entry.calls,
        )
        for entry in section.entries
    ))  # fmt: skip
