"""The saved-attribute table for a terminal.

What comes in: rows of `analyses.memory.saved_rows`. What goes out: lines of `rich.text.Text`, none wider than asked.
Texts are abbreviated first: `Conv` for `ConvBackward0`, `h.0.weight` for `parameter h.0.weight`. If that is not enough,
whole columns are dropped, which the last line names, before a shape or the name of a parameter is cut.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Span, Text

from gradinspect.analyses.memory.saved_rows import AlikeRows, SavedRow, folded_tensors, num_of_nearly_all
from gradinspect.renderers.terminal.class_names import brief_classes, without_backward
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import cut_end, cut_start, shorten_apart
from gradinspect.units import format_bytes, format_count, format_held, format_share

COLUMNS: Final = ("#", "node", "attribute", "value", "bytes", "share", "eager", "status", "origin", "module", "source")
HEADS: Final = {"share": "%"}
RIGHT_ALIGNED: Final = frozenset({"#", "bytes", "share"})
STYLES: Final[Mapping[str, str]] = {
    "#": "cyan", "node": "bold", "value": "green", "share": "dim", "origin": "yellow", "module": "magenta",
    "source": "dim",
}  # fmt: skip
ENDS_SAY_MORE: Final = frozenset({"attribute", "module", "source"})
RANGE: Final = re.compile(r"\d+\.\.\d+")  # of sizes
DROPPED: Final = "dropped"
ONLY_NUMBERS: Final = "only numbers"  # of lines that are all in one file
TOLD_BY: Final = frozenset({"source", "origin"})  # columns in which tensors of one row of the table may differ
Write: TypeAlias = Callable[[SavedRow], str]


class _Step(NamedTuple):
    """One way to make a column narrower: say it in fewer words, cut what is longer than `cells`, or drop it."""

    column: str
    how: str = DROPPED
    cells: int = 0


_FULL: Final = _Step("", "full")
ALWAYS: Final = frozenset({"#", "node", "attribute", "value", "bytes", "status"})  # even if they are empty
ALWAYS_SHOWN: Final = 24  # rows: as many fit a screen, however little the last of them hold
MAX_SHAPE: Final = 40  # cells; no shape is longer unless a file says so

# Taken in this order until the table fits, and taken back, the last first, where there is room again.
STEPS: Final = (
    _Step("node", "without Backward0"), _Step("value", "without strides"), _Step("origin", "only names"),
    _Step("attribute", "without _saved_"), _Step("source", "without folders"), _Step("module"), _Step("source"),
    _Step("value", "cut", 40), _Step("value", "dense", 40), _Step("status", "short"), _Step("origin"), _Step("share"),
    _Step("eager"), _Step("node", "brief"),
    _Step("attribute", "cut", 16), _Step("node", "cut", 16), _Step("attribute", "cut", 12),
    _Step("value", "dense", 20), _Step("node", "cut", 12),
    _Step("status"), _Step("attribute", "cut", 8), _Step("value", "dense", 12), _Step("attribute"), _Step("bytes"),
    _Step("node", "cut", 6), _Step("value", "dense", 6), _Step("node"), _Step("value", "dense", 3),
)  # fmt: skip


FOLDED_STEPS: Final = (  # `module` says which of the equal blocks a row is about, `source` what to change
    _Step("node", "without Backward0"), _Step("origin", "only names"), _Step("attribute", "without _saved_"),
    _Step("source", "without folders"), _Step("origin"), _Step("value", "dense", 40), _Step("status", "short"),
    _Step("share"), _Step("node", "brief"), _Step("#"), _Step("value", "without ranges", MAX_SHAPE),
    _Step("source", ONLY_NUMBERS), _Step("module", "cut", 28),
    _Step("attribute", "cut", 16), _Step("module", "cut", 22), _Step("node", "cut", 16), _Step("attribute", "cut", 12),
    _Step("attribute", "cut", 9), _Step("module", "cut", 16), _Step("source"), _Step("node", "cut", 12),
    _Step("module", "cut", 12),
    *(step for step in STEPS if step.column not in {"value", "source"} and step != _Step("module")), _Step("module"),
    *(step for step in STEPS if step.column == "value" and step.cells and step.cells < MAX_SHAPE),
)  # fmt: skip


def render_folded_table(rows: Sequence[SavedRow], *, width: int = 80, unicode: bool = True, top: int) -> Iterator[Text]:
    """Yield the tensors that hold memory, the largest first, those of equal blocks as one row; and what is left out.

    Args:
        rows: All rows of the table.
        width: Cells.
        unicode: Whether the terminal shows more than ASCII.
        top: How many rows at most; small ones are left out before.
    """
    page = Page(width=width, unicode=unicode)
    folded, holding, num_shown, table = _folded_table(rows, page, top, TOLD_BY)
    if not TOLD_BY.isdisjoint(table.dropped):  # rows that differ in nothing else would appear twice
        folded, holding, num_shown, table = _folded_table(rows, page, top, TOLD_BY.difference(table.dropped))
    lines = table.lines()
    yield next(lines)
    for line, alike in zip(lines, holding, strict=False):
        yield line
        if alike.odd_one is not None:
            yield from page.odd_one(alike.odd_one.name, alike.odd_one.times)
    smaller = holding[num_shown:]
    if smaller:
        num_bytes = sum(alike.row.own_bytes for alike in smaller)
        yield Text(f"{format_count(_number(smaller), 'more tensor')}, {format_bytes(num_bytes)}", "dim")
    yield from (Text(line) for line in _total_lines(rows, width, table.names_sharers))
    weightless = _number([alike for alike in folded if not alike.row.own_bytes])
    others = ((weightless, "weight or shared tensor"), (len(rows) - _number(folded), "value"))
    words = [format_count(count, noun) for count, noun in others if count]
    more = f"{' and '.join(words)} more" if words else "In the order of the nodes"
    yield Text(cut_end(f"{more}: --full", width, page.ellipsis), "dim")
    yield from table.last_lines()


def _folded_table(
    rows: Sequence[SavedRow], page: Page, top: int, told_by: Collection[str]
) -> tuple[list[AlikeRows], list[AlikeRows], int, "_Table"]:
    """Fold the tensors: all, those that hold memory, how many of these are shown, and their table.

    Single numbers come last, and are shown only if there is nothing else.
    """
    folded = folded_tensors(rows, by_line="source" in told_by, by_origin="origin" in told_by)
    holding = sorted((alike for alike in folded if alike.row.own_bytes), key=lambda alike: alike.row.is_scalar)
    num_large = sum(not alike.row.is_scalar for alike in holding) or len(holding)
    num_shown = min(top, num_large, max(ALWAYS_SHOWN, num_of_nearly_all(holding)))
    shown = [_with_times(alike, page.times_sign) for alike in holding[:num_shown]]
    hidden = frozenset({"status"}) if all(row.status in {None, "live"} for row in shown) else frozenset[str]()
    table = _Table(shown, sum(row.own_bytes for row in rows), page, FOLDED_STEPS, ALWAYS - hidden)
    return folded, holding, num_shown, table


def _number(folded: Iterable[AlikeRows]) -> int:
    return sum(alike.times for alike in folded)


def _with_times(alike: AlikeRows, sign: str) -> SavedRow:
    """Write after each shape how many tensors its row stands for."""
    row = replace(alike.row, status=None) if alike.row.status == "live" else alike.row
    return (
        row if alike.times == 1 else replace(row, value=f"{row.value.partition(' strides ')[0]} {sign}{alike.times:,}")
    )


def render_saved_table(
    rows: Sequence[SavedRow], *, width: int = 80, unicode: bool = True, top: int | None = None
) -> Iterator[Text]:
    """Yield the first rows in columns, then how many more there are, then the total of all."""
    table = _Table(rows[:top], sum(row.own_bytes for row in rows), Page(width=width, unicode=unicode), STEPS, ALWAYS)
    yield from table.lines()
    left_out = rows[len(rows[:top]) :]
    if left_out:
        rest = format_bytes(sum(row.own_bytes for row in left_out))
        yield Text(f"{format_count(len(left_out), 'more row')}, {rest}", "dim")
    yield from (Text(line) for line in _total_lines(rows, width, table.names_sharers))
    yield from table.last_lines()


_what_it_says: Callable[[SavedRow], tuple[object, ...]] = attrgetter(
    *(field for field in SavedRow.__struct_fields__ if field != "node")
)


class _Column(NamedTuple):
    """One column of the table as it is written."""

    name: str
    step: _Step
    width: int  # in cells


class _Table:
    """Chooses how to shorten rows so that they fit.

    NOTE [Rows that say the same]
    There may be a million rows, and most say the same as others, but for the number of their node. So rows are
    numbered by what they say, and what they say is measured and written once.
    """

    def __init__(
        self, rows: Sequence[SavedRow], total: int, page: Page, steps: Sequence[_Step], always: frozenset[str]
    ) -> None:
        self._rows = rows
        self._page = page
        self._total = total
        said: dict[tuple[object, ...], int] = {}
        self._numbers = [said.setdefault(_what_it_says(row), len(said)) for row in rows]
        first = dict(zip(reversed(self._numbers), reversed(rows), strict=True))
        self._different = [first[number] for number in range(len(said))]
        self._last = [max(rows, key=lambda row: row.node)] if rows else []
        self._classes = brief_classes(row.node_name for row in self._different)
        self._only_file = _only_file(self._different)
        self._known: dict[_Step, int] = {}
        self._cut: dict[_Step, Mapping[str, str]] = {}
        self._ways = steps
        self._always = always
        steps = self._steps_needed()
        self._how = {step.column: step for step in steps}
        self.dropped = [column for column in COLUMNS if self._how.get(column, _FULL).how == DROPPED]

    def lines(self) -> Iterator[Text]:
        widths = {column: self._width(column, self._how.get(column, _FULL)) for column in COLUMNS}
        heads = (_aligned(c, self._head(c, self._how.get(c, _FULL)), widths[c]) for c in COLUMNS if widths[c])
        heading = Text(GAP.join(heads), "bold")
        heading.rstrip()
        heading.truncate(self._page.width)
        yield heading
        columns = [
            _Column(column, self._how.get(column, _FULL), widths[column]) for column in COLUMNS if widths[column]
        ]
        written: list[Text | None] = [None] * len(self._different)
        for row, number in zip(self._rows, self._numbers, strict=True):
            like = written[number]
            if like is None:
                like = written[number] = self._line(row, columns)
            yield _with_number(like, _aligned("#", str(row.node), widths["#"])) if widths["#"] else like

    def last_lines(self) -> Iterator[Text]:
        """Yield the file of lines that are only numbers, and which columns were left out."""
        if self._only_file and self._how.get("source", _FULL).how == ONLY_NUMBERS:
            line = f"lines of {self._page.visible(self._only_file)}"
            yield Text(cut_end(line, self._page.width, self._page.ellipsis), "dim")
        if self.dropped:
            line = f"not shown at this width: {', '.join(self.dropped)}"
            yield Text(cut_end(line, self._page.width, self._page.ellipsis), "dim")

    def _line(self, row: SavedRow, columns: Sequence["_Column"]) -> Text:
        """Write one row; rich gets the whole text with its styles at once."""
        cells, spans, end = [], [], 0
        for column in columns:
            words = self._words(row, column.name, column.step.how)
            cell = _aligned(column.name, self._fitted(words, row, column.name, column.step), column.width)
            cells.append(cell)
            start, end = end, end + len(cell) + len(GAP)
            style = _style(row, column.name)
            if style:
                spans.append(Span(start, end - len(GAP), style))
        line = Text(GAP.join(cells), no_wrap=True, end="", spans=spans)
        line.rstrip()
        if cell_len(line.plain) > self._page.width:  # a very narrow terminal loses the last columns
            line.truncate(self._page.width)
        return line

    def _words(self, row: SavedRow, column: str, how: str) -> str:
        """Write one cell, in full or in fewer words."""
        match column:
            case "value":
                return _value(row, how)
            case "share":
                return format_share(row.own_bytes, self._total) if row.own_bytes else ""
            case "node" if how in {"brief", "cut"}:
                return self._classes[row.node_name]
            case "source" if how == ONLY_NUMBERS and self._only_file:
                return (row.source or "").rpartition(":")[2]
            case _:
                full, short = _WRITERS[column]
                return full(row) if how == _FULL.how else short(row)

    def _head(self, column: str, step: _Step) -> str:
        if column == "source" and step.how == ONLY_NUMBERS and self._only_file:
            return "line"
        return HEADS.get(column, column)

    @property
    def names_sharers(self) -> bool:
        """Whether rows say with which node they share a storage."""
        is_shown = self._how.get("status", _FULL).how != DROPPED
        return is_shown and any(row.shared_with is not None for row in self._different)

    def _steps_needed(self) -> list[_Step]:
        taken: list[_Step] = []
        for step in self._ways:
            if self._table_width(taken) <= self._page.width:
                break
            taken.append(step)
        taken = self._widened(taken)  # names before columns
        for step in reversed(taken):
            fewer = [other for other in taken if other is not step]
            if self._table_width(fewer) <= self._page.width:
                taken = fewer
        return taken

    def _widened(self, taken: Sequence[_Step]) -> list[_Step]:
        """Give the room that is left to the names that are cut, first to those on the right, of modules."""
        last = {step.column: step for step in taken}
        wider = dict(last)
        for column in reversed(COLUMNS):
            step = wider.get(column, _FULL)
            if step.how == "cut":
                spare = max(self._page.width - self._table_width([*wider.values()]), 0)
                cells = self._width(column, step) + spare  # no name may need all cells, as those are cut at dots
                wider[column] = step._replace(cells=max(cells, step.cells))
        return [wider[step.column] if step is last[step.column] else step for step in taken]

    def _table_width(self, taken: Sequence[_Step]) -> int:
        how = {step.column: step for step in taken}
        widths = [self._width(column, how.get(column, _FULL)) for column in COLUMNS]
        return sum(widths) + len(GAP) * (sum(map(bool, widths)) - 1)

    def _width(self, column: str, step: _Step) -> int:
        """Return how many cells a column takes; 0 if it is not there."""
        if step.how == DROPPED:
            return 0
        key = step._replace(column=column)
        if key not in self._known:
            widest = self._widest(column, step)
            self._known[key] = (
                max(widest, cell_len(self._head(column, step))) if widest or column in self._always else 0
            )
        return self._known[key]

    def _widest(self, column: str, step: _Step) -> int:
        """Return how many cells the widest row takes."""
        rows = self._last if column == "#" else self._different
        said = {(self._words(row, column, step.how), row.kind): row for row in rows}
        return max((cell_len(self._fitted(words, row, column, step)) for (words, _), row in said.items()), default=0)

    def _fitted(self, words: str, row: SavedRow, column: str, step: _Step) -> str:
        text = self._page.visible(words)
        cells = max(step.cells, MAX_SHAPE) if column == "value" and row.kind == "tensor" else step.cells
        if not step.cells or cell_len(text) <= cells:
            return text
        return cut_end(text, cells, self._page.ellipsis) if column == "value" else self._names(column, step)[text]

    def _names(self, column: str, step: _Step) -> Mapping[str, str]:
        """Cut the names in a column, so that no two different ones become alike."""
        key = step._replace(column=column)
        if key not in self._cut:
            words = {self._page.visible(self._words(row, column, step.how)) for row in self._different}
            names = sorted(words)
            cut = cut_start if column in ENDS_SAY_MORE else cut_end
            shown = shorten_apart(names, step.cells, self._page.ellipsis, cut)
            self._cut[key] = dict(zip(names, shown, strict=True))
        return self._cut[key]


def _only_file(rows: Iterable[SavedRow]) -> str | None:
    """Return the file that all source lines are in; None if there are several."""
    files = {row.source.rpartition(":")[0] for row in rows if row.source}
    return files.pop().rpartition("/")[2] if len(files) == 1 else None


def _with_number(like: Text, number: str) -> Text:
    """Write a row that says the same as another one, but for the number of its node, which comes first."""
    text = (number + like.plain[len(number) :])[: len(like.plain)]
    return Text(text, no_wrap=True, end="", spans=list(like.spans))


def _aligned(column: str, text: str, cells: int) -> str:
    padding = " " * (cells - cell_len(text))
    return padding + text if column in RIGHT_ALIGNED else text + padding


def _style(row: SavedRow, column: str) -> str:
    if column == "status" and row.status not in {None, "live"}:
        return "red"
    return STYLES.get(column, "")


def _origin(row: SavedRow) -> str:
    return " ".join(filter(None, (row.origin, row.shown_origin)))


def _eager(row: SavedRow) -> str:
    """Say whether eager keeps it too, in a word."""
    return {None: "", "yes": "too", "no": "no", "not known": "?"}[row.kept_by_eager]


def _value(row: SavedRow, how: str) -> str:
    if how == _FULL.how or row.kind != "tensor":
        return row.value
    text = row.value.partition(" strides ")[0]
    if how == "without ranges":
        text = RANGE.sub("*", text)
    return text if how == "without strides" else text.replace(", ", ",")


def status_text(row: SavedRow) -> str:
    """Describe the status of a saved value: `modified: at version 3, expected 2`, `as #3`."""
    status = f"{row.status}: {row.status_detail}" if row.status == "modified" and row.status_detail else row.status
    if row.status == "packed":
        status = f"packed {row.status_detail}".rstrip()
    if row.shared_with is None:
        return status or ""
    shared = f"as #{row.shared_with}"
    return shared if status in {None, "live"} else f"{status}, {shared}"


_WRITERS: Final[Mapping[str, tuple[Write, Write]]] = {
    "#": (lambda row: str(row.node),) * 2,
    "node": (lambda row: row.node_name, lambda row: without_backward(row.node_name)),
    "attribute": (lambda row: row.attribute, lambda row: row.attribute.removeprefix("_saved_").removeprefix("aten.")),
    "bytes": (lambda row: format_bytes(row.num_bytes) if row.num_bytes else "",) * 2,
    "eager": (_eager,) * 2,
    "status": (status_text, lambda row: status_text(row).partition(":")[0]),
    "origin": (_origin, lambda row: row.shown_origin or row.origin or ""),
    "module": (lambda row: row.module_name or "",) * 2,
    "source": (lambda row: row.source or "", lambda row: (row.source or "").rpartition("/")[2]),
}


def _total_lines(rows: Sequence[SavedRow], width: int, names_sharers: bool) -> tuple[str, ...]:
    held = format_held(sum(row.own_bytes for row in rows), sum(row.weight_bytes for row in rows))
    count = format_count(len(rows), "row")
    rule = f"each storage counted once{'; as #n: shared with #n' if names_sharers else ''}"
    line = f"{count}, {held}: {rule}"
    return (line,) if cell_len(line) <= width else (f"{count}, {held}", rule)
