"""What differs between two graphs, on a terminal.

What comes in: a `GraphDiff`, and what the two graphs are called. What goes out: lines of `rich.text.Text`, none wider
than asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.diff.folding import fold_leaves
from gradinspect.analyses.diff.groups import Group, name_members
from gradinspect.analyses.diff.records import ChangedRow, Detail, GraphDiff, LeafChange, ModuleChange, Pair, ValueDiff
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.analyses.structure.name_folding import alike, fold_names, name_by_indices
from gradinspect.renderers.diff_words import (
    GROUP_MODULE_WORDS,
    LEAF_WORDS,
    MODULE_WORDS,
    SIGNS,
    ChangedLine,
    Side,
    StepDiff,
    apart_from_lines,
    class_words,
    field_of,
    first_alike,
    first_values,
    how_far,
    in_order_of_modules,
    model_of,
    modules_of_group,
    names_of_leaves,
    odd_words,
    place_of,
    step_summary,
    summary,
    value_summary,
)
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import cut_end, cut_start
from gradinspect.units import format_bytes, format_change, format_count, format_growth, format_tensor

STYLES: Final = {"added": "green", "removed": "red", "changed": "cyan"}
MIN_WIDTH = 60
MAX_DETAILS = 4  # of a row
MAX_ROWS = 40
MAX_PARAMETERS = 5
BYTES_CELLS = 10
LINE_CELLS = 22
DETAIL_CELLS = 6  # before what differs of a node or line
SIGN_CELLS = DETAIL_CELLS + 2
ALIKE_BEFORE = 8  # characters of what is too long that are kept before the part that differs
FIGURES = ("A", "B", "change")


class _Columns(NamedTuple):
    """How the rows of one comparison are written."""

    room: int  # cells for what changed
    line_cells: int  # for the line of code
    is_brief: bool  # classes without Backward0


class DiffPage(Page):
    """Writes a comparison at one width."""

    def __init__(self, *, width: int = 80, unicode: bool = True) -> None:
        """Leave room for the figures of both graphs side by side."""
        super().__init__(width=max(width, MIN_WIDTH), unicode=unicode)

    def lines(
        self, diff: GraphDiff, sides: Sequence[Side], failures: Sequence[str] = (), *, max_rows: int | None = MAX_ROWS
    ) -> Iterator[Text]:
        """Yield both captures, the figures, the changes, one line that sums up, and what failed.

        Args:
            diff: What differs.
            sides: What A and B are called.
            failures: Why the gates fail.
            max_rows: How many rows at most; None: all.
        """
        yield from self._head(diff, sides)
        yield from self._changes(diff, max_rows)
        yield Text()
        yield from self._sum(diff)
        yield from self._failures(failures)

    def _head(self, diff: GraphDiff, sides: Sequence[Side]) -> Iterator[Text]:
        yield from self._titles(sides)
        if diff.torch_versions[0] != diff.torch_versions[1]:
            yield Text(self.fit(f"torch {self._arrow(*diff.torch_versions)}", self.width))
        yield Text()
        yield from self._figures(diff)

    def step(self, step: StepDiff, *, max_rows: int | None = MAX_ROWS) -> Iterator[Text]:
        """Yield each call that was compared, and one line that says which differ.

        Args:
            step: The calls.
            max_rows: How many rows of each at most; None: all.
        """
        several = len(step.calls) > 1 or bool(step.unmatched)
        for place, call in enumerate(step.calls):
            if several and call.diff.is_empty and not call.failures:
                yield from self._titles(call.sides)
                yield Text("No difference.", "green")
            elif (first := first_alike(call, step.calls[:place])) is not None:
                yield from self._head(call.diff, call.sides)
                yield Text()
                yield from self.wrapped(self.visible(f"The same changes as in {first.name}."), "bold")
                yield from self._failures(call.failures)
            else:
                yield from self.lines(call.diff, call.sides, call.failures, max_rows=max_rows)
            if several:
                yield Text()
        for sentence in step.unmatched:
            yield from self.wrapped(self.visible(f"{sentence}."), "red")
        if several:
            yield from self.wrapped(f"{step_summary(step)}.", "bold green" if step.is_same else "bold")

    def groups(
        self, groups: Sequence[Group], labels: Sequence[str], failures: Sequence[str], *, max_rows: int | None
    ) -> Iterator[Text]:
        """Yield which captures are equal, and how each of the other groups differs from the first."""
        names = [name_members(labels, group.members) for group in groups]
        count = len(groups[0].members)
        verb = "are equal" if count > 1 else "is like no other"
        yield self.title(f"{names[0]} {verb}, {format_count(count, 'capture')} of {len(labels):,}")
        for group, name in zip(groups[1:], names[1:], strict=True):
            if group.diff is not None:
                yield Text()
                verb = "differs" if len(group.members) == 1 else "differ"
                modules = modules_of_group(group.diff, is_one=len(group.members) == 1)
                told = self.visible(f"{name} {verb}: {summary(group.diff)}{modules}")
                yield from (Text(line.plain, "bold") for line in self.wrapped(told))
                yield from self._changes(group.diff, max_rows, GROUP_MODULE_WORDS)
        yield Text()
        yield from self._bytes_by_group(groups, names)
        if len(groups) == 1:
            yield Text("No difference.", "bold green")
        yield from self._failures(failures)

    def _bytes_by_group(self, groups: Sequence[Group], names: Sequence[str]) -> Iterator[Text]:
        held = [group.diff.held_bytes.after for group in groups[1:] if group.diff is not None]
        first = groups[1].diff.held_bytes.before if len(groups) > 1 and groups[1].diff is not None else 0
        for name, num_bytes in zip(names, (first, *held), strict=False) if held else ():
            yield Text(f"{format_bytes(num_bytes):>{BYTES_CELLS}} held  {self.fit(name, self.width - 17)}")

    def _changes(
        self, diff: GraphDiff, max_rows: int | None, words: Mapping[str, str] = MODULE_WORDS
    ) -> Iterator[Text]:
        rows, lines = apart_from_lines(diff.rows)
        yield from self._rows(diff, rows, max_rows)
        yield from self._lines(lines, max_rows)
        yield from self._modules(diff, words)
        yield from self._leaves(diff)
        yield from self._values(diff.values, diff.model_names[1])

    def _values(self, values: ValueDiff | None, model: str) -> Iterator[Text]:
        """Yield the parameters that differ, the first output and the first gradient, and how many there are."""
        if values is None:
            return
        yield Text()
        yield Text("values", "bold")
        for found in values.parameters[:MAX_PARAMETERS]:
            yield Text(
                self.fit(
                    f"{GAP}parameter {self.visible(shown_path(found.name, model))}: {how_far(found.distance)}",
                    self.width,
                )
            )
        if len(values.parameters) > MAX_PARAMETERS:
            yield Text(f"{GAP}and {len(values.parameters) - MAX_PARAMETERS:,} more parameters", "dim")
        for direction, where, distance in first_values(values, model):
            yield Text(self.fit(f"{GAP}first in {direction}: {self.visible(GAP.join(where))}", self.width), "red")
            yield Text(self.fit(f"{GAP}{GAP}{distance}", self.width))
        yield from self.wrapped(f"{value_summary(values)}.", indent=GAP)

    def _failures(self, failures: Sequence[str]) -> Iterator[Text]:
        for sentence in failures:
            yield from self.wrapped(f"failed  {sentence}", "bold red")

    def _titles(self, sides: Sequence[Side]) -> Iterator[Text]:
        for letter, side in zip("AB", sides, strict=True):
            yield self.title(f"{letter}  {side.label}  {side.captured_at}")

    def _figures(self, diff: GraphDiff) -> Iterator[Text]:
        yield Text(f"{'':<8}{'A':>12}{'B':>12}{'change':>14}", "bold")
        for name, pair in (("nodes", diff.nodes), ("edges", diff.edges), ("leaves", diff.leaves)):
            change = f"{pair.change:+,}" if pair.change else ""
            yield Text(f"{name:<8}{pair.before:>12,}{pair.after:>12,}{change:>14}".rstrip())
        yield self._bytes_line("held", diff.held_bytes)

    def _bytes_line(self, name: str, pair: Pair) -> Text:
        change = format_change(pair.change) if pair.change else ""
        share = f"{format_growth(pair.change, pair.before):>9}" if pair.change and pair.before else ""
        numbers = f"{format_bytes(pair.before):>12}{format_bytes(pair.after):>12}"
        return Text(f"{name:<8}{numbers}{change:>14}{share}".rstrip())

    def _rows(self, diff: GraphDiff, rows: Sequence[ChangedRow], max_rows: int | None) -> Iterator[Text]:
        shown = rows if max_rows is None else _most_telling(rows, max_rows)
        module: object = None
        ordered = in_order_of_modules(shown)
        names = self.apart((place_of(diff, row) for row in ordered), self.width)
        columns = self._columns(ordered)
        for row, name in zip(ordered, names, strict=True):
            if name != module:
                yield Text()
                yield Text(name, "bold")
            module = name
            yield self._row(row, columns)
            yield from self._details(row.details)
            if row.odd_one is not None:
                yield from self.wrapped(
                    self.visible(odd_words(row.odd_one, model_of(diff, row))), "yellow", indent=" " * DETAIL_CELLS
                )
        if len(shown) < len(rows):
            yield Text()
            yield Text(f"{format_count(len(rows) - len(shown), 'more row')}, with --full", "dim")

    def _lines(self, lines: Sequence[ChangedLine], max_lines: int | None) -> Iterator[Text]:
        """Yield the lines of code that differ, those that make most nodes first."""
        if lines:
            yield Text()
            yield Text("lines", "bold")
        ordered = sorted(lines, key=lambda line: -len(line.nodes))
        for line in ordered[:max_lines]:
            head = f"{GAP}{SIGNS['changed']} {self.visible(line.place)}{GAP}{format_count(len(line.nodes), 'node')}"
            yield Text(self.fit(head, self.width), STYLES["changed"])
            for sign, code in zip("-+", self._differing(line.before, line.after, self.width - SIGN_CELLS), strict=True):
                yield Text(f"{'':{DETAIL_CELLS}}{sign} {code}", STYLES["removed" if sign == "-" else "added"])
        if max_lines is not None and len(lines) > max_lines:
            yield Text(f"{GAP}{format_count(len(lines) - max_lines, 'more line')}, with --full", "dim")

    def _columns(self, rows: Sequence[ChangedRow]) -> "_Columns":
        """Make room for lines of code: shorten classes in all rows if one of them does not fit."""
        line_cells = min(max((cell_len(self.visible(row.line)) for row in rows), default=0), LINE_CELLS)
        room = self.width - BYTES_CELLS - line_cells - 2 * len(GAP)
        is_brief = any(cell_len(self._words(row, is_brief=False)) > room for row in rows)
        return _Columns(room, line_cells, is_brief)

    def _words(self, row: ChangedRow, *, is_brief: bool) -> str:
        what = row.what.removesuffix("Backward0") or row.what if is_brief else row.what
        size = format_count(row.num_nodes, "node") if row.is_module else ""
        info = format_tensor(row.info) if row.info is not None and row.kind != "changed" else ""
        words = filter(None, (f"{self.visible(what)}{self._times(row.count)}", size, self.visible(info)))
        return f"{GAP}{SIGNS[row.kind]} {GAP.join(words)}"

    def _row(self, row: ChangedRow, columns: "_Columns") -> Text:
        held = format_change(row.held_bytes) if row.held_bytes else ""
        where = cut_start(self.visible(row.line), columns.line_cells, self.ellipsis)
        right = f"{held:>{BYTES_CELLS}}{GAP}{where}".rstrip()
        left = self.fit(self._words(row, is_brief=columns.is_brief), columns.room)
        line = Text(left, STYLES[row.kind])
        if right:
            line.append(" " * (columns.room - cell_len(left)) + GAP + right, "default")
        line.rstrip()
        return line

    def _details(self, details: Sequence[Detail]) -> Iterator[Text]:
        for detail in details[:MAX_DETAILS]:
            head = self.fit(f"{' ' * DETAIL_CELLS}{self.visible(field_of(detail))}: ", self.width // 2)
            yield Text(head + self._arrow_within(detail.before, detail.after, self.width - cell_len(head)))
        if len(details) > MAX_DETAILS:
            yield Text(
                f"      and {format_count(len(details) - MAX_DETAILS, 'more property', 'more properties')}", "dim"
            )

    @property
    def _to(self) -> str:
        return "→" if self.unicode else "->"

    def _arrow(self, before: str, after: str) -> str:
        return f"{self.visible(before) or '(none)'} {self._to} {self.visible(after) or '(none)'}"

    def _arrow_within(self, before: str, after: str, room: int) -> str:
        """Write the value before and after; of a long one, the part that differs."""
        text = self._arrow(before, after)
        if cell_len(text) <= room:
            return text
        return f" {self._to} ".join(self._differing(before, after, (room - len(self._to) - 2) // 2))

    def _differing(self, before: str, after: str, room: int) -> Iterator[str]:
        """Yield both texts; if one does not fit, both begin shortly before their first difference."""
        before, after = (text or "(none)" for text in (before, after))
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        is_long = max(cell_len(self.visible(text)) for text in (before, after)) > room
        start = max(alike - ALIKE_BEFORE, 0) if is_long else 0
        for text in (before, after):
            yield cut_end(self.ellipsis * (start > 0) + self.visible(text[start:]), room, self.ellipsis)

    def _times(self, count: int) -> str:
        return f" {self.times(count)}".rstrip()

    def _modules(self, diff: GraphDiff, words: Mapping[str, str]) -> Iterator[Text]:
        changes = diff.module_changes
        if changes:
            yield Text()
            yield Text("modules", "bold")
        groups: dict[tuple[str, str], list[ModuleChange]] = {}
        for change in changes:
            groups.setdefault((change.kind, change.class_name), []).append(change)
        for (kind, class_name), same in groups.items():
            yield from self._same_modules(diff, words.get(kind, kind), class_name, same)

    def _same_modules(
        self, diff: GraphDiff, word: str, class_name: str, same: Sequence[ModuleChange]
    ) -> Iterator[Text]:
        old, new = diff.model_names
        one_sided = [shown_path(change.before or change.after, model_of(diff, change)) for change in same
                     if not (change.before and change.after) or change.before == change.after]  # fmt: skip
        both = [(shown_path(change.before, old), shown_path(change.after, new)) for change in same
                if change.before and change.after and change.before != change.after]  # fmt: skip
        style = STYLES.get(same[0].kind, "cyan")
        folded = ((f" {self._to} ".join(pair), [""]) for pair in _fold_pairs(both))
        what = class_name.replace("→", self._to)
        found = (*fold_names(one_sided), *folded)
        texts = [f"{word} {name}{self._times(len(names))}{GAP}{what}" for name, names in found]
        yield from (Text(GAP + text, style) for text in self.apart(texts, self.width - len(GAP)))

    def _leaves(self, diff: GraphDiff) -> Iterator[Text]:
        changes = diff.leaf_changes
        if changes:
            yield Text()
            yield Text("leaves", "bold")
        groups: dict[tuple[str, str], list[LeafChange]] = {}
        for change in changes:
            what = self._arrow(change.before, change.after) if change.before or change.after else ""
            groups.setdefault((change.kind, what if change.kind == "changed" else ""), []).append(change)
        for (kind, what), same in groups.items():
            style = {"lost": "red", "frozen": "red", "gained": "green", "unfrozen": "green"}.get(kind, "cyan")
            named = self._renamed(diff, same) if kind == "renamed" else names_of_leaves(diff, same)
            found = [(name, self._times(len(folded))) for name, folded in named]
            texts = [f"{LEAF_WORDS[kind]}: {name}{times}{GAP}{what}".rstrip() for name, times in found]
            yield from (Text(GAP + text, style) for text in self.apart(texts, self.width - len(GAP)))

    def _renamed(self, diff: GraphDiff, same: Sequence[LeafChange]) -> Iterator[tuple[str, list[str]]]:
        old, new = diff.model_names
        names = (self._arrow(shown_path(one.before, old), shown_path(one.after, new)) for one in same)
        yield from fold_leaves(names, ())

    def _sum(self, diff: GraphDiff) -> Iterator[Text]:
        if diff.is_empty:
            yield Text("No difference.", "bold green")
            return
        if classes := class_words(diff, self._to):
            yield from self.wrapped(self.visible(f"classes: {classes}"), indent=GAP)
        yield from self.wrapped(f"{summary(diff)}.", "bold")


def _most_telling(rows: Sequence[ChangedRow], count: int) -> list[ChangedRow]:
    """Choose rows if not all can be shown: added and removed ones first, then those with most bytes."""
    ranked = sorted(rows, key=lambda row: (row.kind == "changed", -abs(row.held_bytes), -row.count))
    return ranked[:count]


def _fold_pairs(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Fold `h.0` to `blocks.0`, `h.1` to `blocks.1` to one: `h.0-1` to `blocks.0-1`."""
    for group in alike(pairs, lambda pair: pair, lambda _: None):
        before, after = map(name_by_indices, zip(*group, strict=True))
        yield before, after
