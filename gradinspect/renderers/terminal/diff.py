"""What differs between two graphs, on a terminal.

What comes in: a `GraphDiff`, and what the two graphs are called. What goes out: lines of `rich.text.Text`, none wider
than asked for.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.diff.folding import fold_leaves, fold_names
from gradinspect.analyses.diff.groups import Group, name_members
from gradinspect.analyses.diff.records import Detail, Distance, GraphDiff, ModuleChange, Pair, Row, ValueDiff
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import cut_start
from gradinspect.units import format_bytes, format_change, format_count, format_tensor

SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}
STYLES: Final = {"added": "green", "removed": "red", "changed": "cyan"}
LEAF_WORDS: Final = {
    "lost": "no gradient reaches", "gained": "a gradient reaches", "frozen": "frozen", "unfrozen": "unfrozen",
    "renamed": "renamed", "changed": "changed",
}  # fmt: skip
MODULE_WORDS: Final = {"removed": "only in A:", "added": "only in B:"}
FIELD_WORDS: Final = {"shape": "", "dtype": "", "tensor": "", "inputs": "input"}
OUTSIDE = "(outside modules)"
MIN_WIDTH = 60
MAX_DETAILS = 4  # of a row
MAX_ROWS = 40
MAX_PARAMETERS = 5
BYTES_CELLS = 10
LINE_CELLS = 22
FIGURES = ("A", "B", "change")


class Side(NamedTuple):
    """One of the two graphs."""

    label: str  # the SOURCE as the user wrote it
    captured_at: str


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
        for letter, side in zip("AB", sides, strict=True):
            yield self.title(f"{letter}  {side.label}  {side.captured_at}")
        if diff.torch_versions[0] != diff.torch_versions[1]:
            yield Text(self.fit(f"torch {self._arrow(*diff.torch_versions)}", self.width))
        yield Text()
        yield from self._figures(diff)
        yield from self._changes(diff, max_rows)
        yield Text()
        yield from self._sum(diff)
        yield from self._failures(failures)

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
                yield from (Text(line.plain, "bold") for line in self.wrapped(f"{name} {verb}: {summary(group.diff)}"))
                yield from self._changes(group.diff, max_rows)
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

    def _changes(self, diff: GraphDiff, max_rows: int | None) -> Iterator[Text]:
        yield from self._rows(diff.rows, max_rows)
        yield from self._modules(diff.module_changes)
        yield from self._leaves(diff)
        yield from self._values(diff.values)

    def _values(self, values: ValueDiff | None) -> Iterator[Text]:
        """Yield the parameters that differ, the first output and the first gradient, and how many there are."""
        if values is None:
            return
        yield Text()
        yield Text("values", "bold")
        for found in values.parameters[:MAX_PARAMETERS]:
            yield Text(self.fit(f"{GAP}parameter {self.visible(found.name)}: {how_far(found.distance)}", self.width))
        if len(values.parameters) > MAX_PARAMETERS:
            yield Text(f"{GAP}and {len(values.parameters) - MAX_PARAMETERS:,} more parameters", "dim")
        for what, first in (("forward", values.first_forward), ("backward", values.first_backward)):
            if first is not None:
                output = f" output {first.output_nr}" if first.output_nr else ""
                where = GAP.join(
                    filter(None, (f"{first.name}{output}", first.module and shown_path(first.module), first.line))
                )
                yield Text(self.fit(f"{GAP}first in {what}: {self.visible(where)}", self.width), "red")
                yield Text(self.fit(f"{GAP}{GAP}{how_far(first.distance)}", self.width))
        yield from self.wrapped(f"{value_summary(values)}.", indent=GAP)

    def _failures(self, failures: Sequence[str]) -> Iterator[Text]:
        for sentence in failures:
            yield from self.wrapped(f"failed  {sentence}", "bold red")

    def _figures(self, diff: GraphDiff) -> Iterator[Text]:
        yield Text(f"{'':<8}{'A':>12}{'B':>12}{'change':>14}", "bold")
        for name, pair in (("nodes", diff.nodes), ("edges", diff.edges), ("leaves", diff.leaves)):
            change = f"{pair.change:+,}" if pair.change else ""
            yield Text(f"{name:<8}{pair.before:>12,}{pair.after:>12,}{change:>14}".rstrip())
        yield self._bytes_line("held", diff.held_bytes)

    def _bytes_line(self, name: str, pair: Pair) -> Text:
        change = format_change(pair.change) if pair.change else ""
        share = f"{100 * pair.change / pair.before:>+8.1f}%" if pair.change and pair.before else ""
        numbers = f"{format_bytes(pair.before):>12}{format_bytes(pair.after):>12}"
        return Text(f"{name:<8}{numbers}{change:>14}{share}".rstrip())

    def _rows(self, rows: Sequence[Row], max_rows: int | None) -> Iterator[Text]:
        shown = rows if max_rows is None else _most_telling(rows, max_rows)
        module: object = None
        for row in sorted(shown, key=lambda row: (row.is_outside, _sort_key(row.module))):
            name = OUTSIDE if row.is_outside else shown_path(row.module)
            if name != module:
                yield Text()
                yield Text(self.fit(name, self.width), "bold")
            module = name
            yield self._row(row)
            yield from self._details(row.details)
        if len(shown) < len(rows):
            yield Text()
            yield Text(f"{format_count(len(rows) - len(shown), 'more row')}, with --full", "dim")

    def _row(self, row: Row) -> Text:
        times = f" {'×' if self.unicode else 'x'}{row.count:,}" if row.count > 1 else ""
        size = format_count(row.num_nodes, "node") if row.is_module else ""
        info = format_tensor(row.info) if row.info is not None and row.kind != "changed" else ""
        held = format_change(row.held_bytes) if row.held_bytes else ""
        where = cut_start(self.visible(row.line), LINE_CELLS, self.ellipsis)
        right = f"{held:>{BYTES_CELLS}}{GAP}{where}".rstrip()
        room = self.width - BYTES_CELLS - LINE_CELLS - 2 * len(GAP)
        words = GAP.join(filter(None, (f"{self.visible(row.what)}{times}", size, self.visible(info))))
        left = self.fit(f"{GAP}{SIGNS[row.kind]} {words}", room)
        line = Text(left, STYLES[row.kind])
        if right:
            line.append(" " * (room - cell_len(left)) + GAP + right, "default")
        line.rstrip()
        return line

    def _details(self, details: Sequence[Detail]) -> Iterator[Text]:
        for detail in details[:MAX_DETAILS]:
            name = detail.name if detail.field not in {"operator", "line", "module", "hooks"} else ""
            words = " ".join(filter(None, (FIELD_WORDS.get(detail.field, detail.field), self.visible(name))))
            value = self._arrow(detail.before, detail.after)
            yield Text(self.fit(f"      {words}: {value}", self.width))
        if len(details) > MAX_DETAILS:
            yield Text(
                f"      and {format_count(len(details) - MAX_DETAILS, 'more property', 'more properties')}", "dim"
            )

    def _arrow(self, before: str, after: str) -> str:
        arrow = "→" if self.unicode else "->"
        return f"{self.visible(before) or '(none)'} {arrow} {self.visible(after) or '(none)'}"

    def _modules(self, changes: Sequence[ModuleChange]) -> Iterator[Text]:
        if changes:
            yield Text()
            yield Text("modules", "bold")
        groups: dict[tuple[str, str], list[ModuleChange]] = {}
        for change in changes:
            groups.setdefault((change.kind, change.class_name), []).append(change)
        for (kind, class_name), same in groups.items():
            yield from self._same_modules(kind, class_name, same)

    def _same_modules(self, kind: str, class_name: str, same: Sequence[ModuleChange]) -> Iterator[Text]:
        arrow = "→" if self.unicode else "->"
        one_sided = [shown_path(change.before or change.after) for change in same
                     if not (change.before and change.after) or change.before == change.after]  # fmt: skip
        both = [f"{shown_path(change.before)} {arrow} {shown_path(change.after)}" for change in same
                if change.before and change.after and change.before != change.after]  # fmt: skip
        style = STYLES.get(kind, "cyan")
        for name, count in (*fold_names(one_sided), *((name, 1) for name in _fold_pairs(both, arrow))):
            times = f" {'×' if self.unicode else 'x'}{count:,}" if count > 1 else ""
            what = self.visible(class_name.replace("→", arrow))
            text = f"{GAP}{MODULE_WORDS.get(kind, kind)} {self.visible(name)}{times}{GAP}{what}"
            yield Text(self.fit(text, self.width), style)

    def _leaves(self, diff: GraphDiff) -> Iterator[Text]:
        changes = diff.leaf_changes
        whole = [change.before or change.after for change in diff.module_changes if change.kind in {"removed", "added"}]
        if changes:
            yield Text()
            yield Text("leaves", "bold")
        groups: dict[tuple[str, str], list[str]] = {}
        for change in changes:
            what = self._arrow(change.before, change.after) if change.before or change.after else ""
            groups.setdefault((change.kind, what if change.kind == "changed" else ""), []).append(
                self._arrow(change.before, change.after) if change.kind == "renamed" else change.name
            )
        for (kind, what), names in groups.items():
            style = {"lost": "red", "frozen": "red", "gained": "green", "unfrozen": "green"}.get(kind, "cyan")
            for name, count in fold_leaves(names, whole):
                times = f" {'×' if self.unicode else 'x'}{count:,}" if count > 1 else ""
                text = f"{GAP}{LEAF_WORDS[kind]}: {self.visible(name)}{times}{GAP}{what}".rstrip()
                yield Text(self.fit(text, self.width), style)

    def _sum(self, diff: GraphDiff) -> Iterator[Text]:
        if diff.is_empty:
            yield Text("No difference.", "bold green")
            return
        yield from self.wrapped(f"{summary(diff)}.", "bold")


def how_far(distance: Distance) -> str:
    """Describe a distance: relative to the norm, and in itself."""
    if not math.isfinite(distance.relative):
        return "more elements are NaN or Inf in one of them"
    order = ", the same elements in another order" if distance.is_reordered else ""
    return f"differs by {distance.relative:.1e} of its norm, {distance.absolute:.1e} in all{order}"


def value_summary(values: ValueDiff) -> str:
    """Say how many values differ, in one sentence without its full stop."""
    outputs, gradients = format_count(values.num_outputs, "output"), format_count(values.num_gradients, "gradient")
    counts = "no output and no gradient" if values.is_empty else f"{outputs} and {gradients}"
    rounded = f"; {values.num_rounded:,} more by rounding, at most {values.largest_rounded:.1e}"
    differ = "differs" if values.is_empty else "differ"
    return f"{counts} of {values.num_compared:,} compared {differ}{rounded if values.num_rounded else ''}"


def summary(diff: GraphDiff) -> str:
    """Say how much differs, in one sentence without its full stop."""
    leaves = [change.kind for change in diff.leaf_changes]
    counts = (
        (len(diff.added), "node", "added"),
        (len(diff.removed), "node", "removed"),
        (len(diff.changed), "node", "changed"),
        (leaves.count("lost") + leaves.count("frozen"), "leaf", "without a gradient now"),
        (leaves.count("gained") + leaves.count("unfrozen"), "leaf", "with a gradient now"),
        (leaves.count("renamed") + leaves.count("changed"), "leaf", "changed"),
        (len(diff.module_changes), "module", "changed"),
    )
    words = [f"{format_count(count, noun, 'leaves' if noun == 'leaf' else None)} {verb}"
             for count, noun, verb in counts if count]  # fmt: skip
    if diff.values is not None and not diff.values.is_empty:
        words.append("values differ")
    held = [f"{format_change(diff.held_bytes.change)} held"] if diff.is_held_changed else []
    return ", ".join([*words, *held]) or "No difference"


def _most_telling(rows: Sequence[Row], count: int) -> list[Row]:
    """Choose rows if not all can be shown: added and removed ones first, then those with most bytes."""
    ranked = sorted(rows, key=lambda row: (row.kind == "changed", -abs(row.held_bytes), -row.count))
    return ranked[:count]


def _sort_key(path: str) -> tuple[tuple[int, int, str], ...]:
    """Order paths by their parts, numbers as numbers."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in path.split("."))


def _fold_pairs(pairs: Sequence[str], arrow: str) -> Iterator[str]:
    """Fold `h.0 → blocks.0`, `h.1 → blocks.1` to `h.0-1 → blocks.0-1`."""
    groups: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for pair in pairs:
        before, _, after = pair.partition(f" {arrow} ")
        stems = _stem(before), _stem(after)
        olds, news = groups.setdefault(stems, ([], []))
        olds.append(before)
        news.append(after)
    for olds, news in groups.values():
        yield f" {arrow} ".join(", ".join(name for name, _ in fold_names(names)) for names in (olds, news))


def _stem(path: str) -> str:
    return ".".join("*" if part.isdecimal() else part for part in path.split("."))
