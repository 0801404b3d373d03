"""A graph as a tree: `git log --graph` crossed with a module tree, in the direction gradients flow.

What comes in: a `Graph`. What goes out: lines of `rich.text.Text`, none wider than asked for.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, pairwise

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.copy_ranges import bytes_of_twins, format_bytes_between, with_ranges
from gradinspect.analyses.structure.cut import Cut, describe_cut
from gradinspect.analyses.structure.expansion import can_open, opens_to, readable_depth_of_rows
from gradinspect.analyses.structure.folding import Scope, fold_graph, node_ids
from gradinspect.analyses.structure.outline import IsOpen, outline
from gradinspect.analyses.structure.outline_rows import Guide, Row, guides_below, split_row
from gradinspect.graph import Frame, Graph, Record, own_frame
from gradinspect.renderers.terminal.text import Part, cut_start, fit, shorten_apart, visible
from gradinspect.renderers.terminal.trees.tree_rows import RowWriter
from gradinspect.renderers.terminal.trees.tree_words import Symbols
from gradinspect.units import format_bytes, format_count, format_share

BYTES_CELLS = 10
_ROUNDED = re.compile(r"\d+\.\d")  # a number that may be written without its decimal
SHARE_CELLS = 5
MIN_WIDTH_OF_SHARES = 76
MAX_SOURCE_CELLS = 24
MIN_CELLS_SAVED = 4  # by shortening file names, or they stay whole
MIN_SOURCE_CELLS = 14  # file names are shortened to this before the text is
TEXT_CELLS = 46  # preferred width of the text
MIN_TEXT_CELLS = 36  # the source column is dropped before the text gets narrower
MAX_TEXT_CELLS = 90  # bytes stay near the names on a wide terminal
MAX_DEPTH = 1_000_000
GUIDES: dict[Guide, str] = {"branch": "├─ ", "last_branch": "└─ ", "line": "│  ", "gap": "   ", "scope": "┊ "}
ASCII_GUIDES: dict[Guide, str] = {"branch": "|- ", "last_branch": "`- ", "line": "|  ", "gap": "   ", "scope": ": "}


class TreeOptions(Record, frozen=True, kw_only=True):
    """How to print a tree."""

    width: int = 80
    depth: int | None = None  # of nested expanded scopes; None: NOTE [About forty boxes] in `expansion`
    full: bool = False  # fold nothing
    fold_shapes: bool = False  # show a chain of shape-only nodes as one row
    max_rows: int | None = 100
    unicode: bool = True
    cut: Cut | None = None  # what is missing, if the graph is part of another
    names_options: bool = True  # say which options of the command line show more


def render_tree(graph: Graph, options: TreeOptions | None = None) -> Iterator[Text]:
    """Yield which part of the graph is shown, the tree, what was left out, and a legend."""
    options = options or TreeOptions()
    scope = fold_graph(graph, repeats=not options.full, shapes=options.fold_shapes)
    is_open = opener(scope, options, lambda opens: outline(graph, scope, opens))
    page = TreePage(graph, options, scope)
    yield from page.first_lines()
    rows = islice(outline(graph, scope, is_open), options.max_rows)
    for row, following in pairwise(chain(rows, [None])):
        if row is not None:
            yield from page.lines(row, following)
    yield from page.last_lines(scope.num_nodes)


def opener(scope: Scope, options: TreeOptions, rows: Callable[[IsOpen], Iterable[object]]) -> IsOpen:
    """Choose which scopes are expanded: all, those up to the requested depth, or as many as are easy to read.

    Args:
        scope: The folded graph.
        options: How to print it.
        rows: Yields its rows, with some scopes expanded.
    """
    if options.full or (options.max_rows is None and options.depth is None):
        return opens_to(MAX_DEPTH)
    if options.depth is not None:
        return opens_to(options.depth)
    return opens_to(
        readable_depth_of_rows(scope, lambda most, depth: len(list(islice(rows(opens_to(depth)), most + 1))) > most)
    )


class TreePage:
    """Arranges rows in columns, and counts what was shown."""

    def __init__(self, graph: Graph, options: TreeOptions, folded: Scope | None = None) -> None:
        """Measure the columns.

        Args:
            graph: The graph.
            options: How to print it.
            folded: Its folding, if the first copy of a repeat is shown for all.
        """
        self.graph = graph
        self.options = options
        self.saved = held_bytes_by_node(graph)
        between = {} if folded is None else bytes_of_twins(folded.items, self.saved)
        shown = graph if folded is None else with_ranges(graph, folded.items)
        self.writer = RowWriter(shown, self.saved, unicode=options.unicode, cut=options.cut, between=between)
        self.symbols: Symbols = self.writer.symbols
        self.total = sum(self.saved)
        self.share_cells = SHARE_CELLS if options.width >= MIN_WIDTH_OF_SHARES else 0
        self.bytes_cells = BYTES_CELLS + 1 + self.share_cells if self.total else 0
        room = min(max(options.width - self.bytes_cells - TEXT_CELLS - 2, MIN_SOURCE_CELLS), MAX_SOURCE_CELLS)
        self.sources = self._source_texts(room)
        self.source_cells = max((cell_len(source) + 2 for source in self.sources.values()), default=0)
        if options.width - self.bytes_cells - self.source_cells < MIN_TEXT_CELLS:
            self.source_cells = 0
        self.text_cells = min(options.width - self.bytes_cells - self.source_cells, MAX_TEXT_CELLS)
        self.last_source = ""
        self.last_own: Frame | None = None
        self.num_told = 0
        self.num_closed = 0
        self.kinds: set[str] = set()
        self.direction = "gradients flow down"

    def first_lines(self) -> Iterator[Text]:
        """Yield which part of the graph is shown."""
        if self.options.cut is not None:
            words = visible(describe_cut(self.options.cut), unicode=self.options.unicode)
            yield fit([Part(words, "bold", can_shrink=True)], self.options.width, self.symbols.ellipsis)

    def lines(self, row: Row, following: Row | None, after: Iterable[Part] = ()) -> Iterator[Text]:
        """Yield a row as one line, or as several if it is too wide.

        A chain is split into its nodes; marks, and what comes `after` the row, move to their own line. `following`
        determines the guides they need.
        """
        self._count(row)
        parts = list(self.writer.parts(row))
        is_split = row.kind == "node" and bool(row.targets) and _needed(parts) > self._room(row, parts)
        rows = split_row(row) if is_split else [row]
        for part_of_row, below in pairwise([*rows, following]):
            if part_of_row is not None:
                yield from self._wrapped_lines(part_of_row, below, after)

    def line(self, row: Row) -> Text:
        """Return a row as one line, cut if it is too wide, regardless of the rows above it."""
        self.last_source = ""
        return self._line(row, list(self.writer.parts(row)))

    def _wrapped_lines(self, row: Row, following: Row | None, after: Iterable[Part]) -> Iterator[Text]:
        parts = [*self.writer.parts(row), *after, *self._own_line(row)]
        marks = [part for part in parts if part.can_wrap]
        if marks and _needed(parts) > self._room(row, parts):
            yield self._line(row, [part for part in parts if not part.can_wrap])
            yield self._wrapped(row, marks, following)
        else:
            yield self._line(row, parts)

    def _own_line(self, row: Row) -> Iterator[Part]:
        """Yield the user's line that called into the library, if it differs from that of the row above."""
        own = own_frame(self.graph, self.graph.nodes[row.nodes[0]].frame) if row.nodes else None
        if own is not None and own != self.last_own:
            self.last_own = own
            yield Part(f"  called at {self._place(own, self.options.width // 2)}", "dim", can_wrap=True)

    def _wrapped(self, row: Row, parts: list[Part], following: Row | None) -> Text:
        below = guides_below(row)
        has_twigs = (
            following is not None and following.guides[: len(below)] == below and len(following.guides) > len(below)
        )
        guides = self._guides((*below, "line" if has_twigs else "gap"))
        line = Text(no_wrap=True, end="").append(guides, "dim")
        line.append_text(fit(parts, self.options.width - cell_len(guides), self.symbols.ellipsis))
        return line

    def _room(self, row: Row, parts: list[Part]) -> int:
        """Return how wide a row may be before it is split: a location gives way only if it repeats the one above."""
        room = self.options.width - cell_len(self._guides(row.guides))
        aligned = room - (self.options.width - self.text_cells)
        source = self._source_text(row)
        gives_way = source == self.last_source and _needed(parts) > aligned
        is_free = not self._bytes_text(row).strip() and (not source or gives_way)
        return max(room if is_free else aligned, 0)

    def _columns(self, row: Row, parts: list[Part]) -> tuple[int, str, str]:
        """Return how wide the text of a row may be, and the bytes and the source location to its right.

        Columns are dropped before names are cut, if they are whole then: the location, first of all one that only
        repeats the one above, then the share of the bytes.
        """
        room = self.options.width - cell_len(self._guides(row.guides))
        aligned = room - (self.options.width - self.text_cells)
        num_bytes, source = self._bytes_text(row), self._source_text(row)
        shorter = num_bytes[: -self.share_cells] if num_bytes.endswith("%") else num_bytes
        kept = [f"  {text.strip()}" if text.strip() else "" for text in (num_bytes, shorter)]
        rooms = [max(room - cell_len(text), 0) for text in kept]
        least = _least(parts, has_whole_names=True)
        if least > max(rooms):
            least = _least(parts)
        if not num_bytes.strip():
            needed = max(_needed(parts), least) if source == self.last_source else least
            return (aligned, num_bytes, source) if source and needed <= aligned else (rooms[0], "", "")
        if least <= aligned:
            return aligned, num_bytes, source
        place = 0 if least <= rooms[0] else 1
        return rooms[place], kept[place], ""

    def _line(self, row: Row, parts: list[Part]) -> Text:
        line = Text(no_wrap=True, end="").append(self._guides(row.guides), "dim")
        room, num_bytes, source = self._columns(row, parts)
        line.append_text(fit(parts, room, self.symbols.ellipsis))
        if num_bytes or source:
            line.append(" " * (self.text_cells - line.cell_len))
        line.append(num_bytes, "dim" if row.is_open else "")
        line.append(source, "dim")
        self.last_source = source or self.last_source
        line.rstrip()
        return line

    def last_lines(self, num_nodes: int) -> Iterator[Text]:
        """Yield what was left out, and a legend."""
        missing = num_nodes - self.num_told
        if missing:
            how = ": use --depth, --around, --full or -o FILE" if self.options.names_options else ""
            words = f"{format_count(missing, 'more node')} not shown{how}"
            yield fit([Part(f"{self.symbols.ellipsis} {words}", "bold")], self.options.width, self.symbols.ellipsis)
        if self.num_closed:
            how = "; --depth or --full open them" if self.options.names_options else ""
            words = f"{format_count(self.num_closed, 'block')} closed{how}"
            yield fit([Part(f"{self.symbols.closed} {words}", "bold")], self.options.width, self.symbols.ellipsis)
        yield self._legend()

    def _count(self, row: Row) -> None:
        self.num_told += len(row.nodes)
        if row.scope is not None:
            times = len(row.scope.copies) + 1
            self.num_told += row.scope.num_nodes * (times - 1) // times if row.is_open else row.scope.num_nodes
            self.num_closed += can_open(row.scope) and not row.is_open
        for link in row.targets:
            self.kinds.add("leaf" if self.graph.nodes[link.edge.next_node].kind == "accumulate_grad" else "reference")

    def _guides(self, guides: Iterable[Guide]) -> str:
        table = GUIDES if self.options.unicode else ASCII_GUIDES
        text = "".join(table[guide] for guide in guides)
        limit = self.text_cells // 2
        if cell_len(text) <= limit:
            return text
        mark = f"{self.symbols.ellipsis}+{len(text) - limit} "
        return mark + text[len(text) - limit + len(mark) :]

    def _bytes_text(self, row: Row) -> str:
        ids = node_ids(row.scope) if row.scope else range(row.nodes[0], row.nodes[0] + 1) if row.nodes else range(0)
        ends = self.writer.between.get(ids)
        if ends is not None and len(row.nodes) < 2:
            between = format_bytes_between(*ends)
            rounded = _ROUNDED.sub(lambda found: f"{float(found[0]):.0f}", between)
            ways = (between, rounded, f"..{format_bytes(ends[1])}")
            text = next((text for text in ways if len(text) < self.bytes_cells), ways[-1])
            return f"{text:>{self.bytes_cells}}"
        num_bytes = row.scope.held_bytes if row.scope else sum(self.saved[node] for node in row.nodes)
        if not num_bytes:
            return " " * self.bytes_cells
        share = format_share(num_bytes, self.total) if self.share_cells else ""
        return f"{format_bytes(num_bytes):>{BYTES_CELLS + 1}}{share:>{self.share_cells}}"

    def _source_text(self, row: Row) -> str:
        is_chain = row.scope is not None and row.scope.kind == "shapes"
        nodes = node_ids(row.scope) if row.scope is not None and is_chain else row.nodes
        frame = self.graph.nodes[nodes[0]].frame if nodes and self.source_cells else None
        return "" if frame is None else f"  {self.sources[frame]}"

    def _source_texts(self, room: int) -> dict[int, str]:
        """Write locations as `train.py:22`; different files are never written alike."""
        used = sorted({node.frame for node in self.graph.nodes if node.frame is not None})
        frames = [self.graph.frames[frame] for frame in used]
        room -= max((len(f":{frame.line}") for frame in frames), default=0)
        files = {frame.file for frame in frames}
        whole = max(map(cell_len, self._file_names(files, self.options.width).values()), default=0)
        names = self._file_names(files, whole if whole - room < MIN_CELLS_SAVED else room)
        return {place: f"{names[frame.file]}:{frame.line}" for place, frame in zip(used, frames, strict=True)}

    def _file_names(self, files: Iterable[str], room: int) -> dict[str, str]:
        """Name files without their folders unless these tell them apart; a long name keeps its end."""
        paths = sorted(files)
        times = Counter(path.rpartition("/")[2] for path in paths)
        names = [path if times[path.rpartition("/")[2]] > 1 else path.rpartition("/")[2] for path in paths]
        suffixes = [".py" if name.endswith(".py") else "" for name in names]
        stems = [visible(name.removesuffix(".py"), unicode=self.options.unicode) for name in names]
        room -= max(map(len, suffixes), default=0)
        shown = shorten_apart(stems, room, self.symbols.ellipsis, cut_start)
        return {path: stem + suffix for path, stem, suffix in zip(paths, shown, suffixes, strict=True)}

    def _place(self, frame: Frame, room: int) -> str:
        """Write one location; a long name keeps its end, and always the line number."""
        return f"{self._file_names([frame.file], room - len(f':{frame.line}'))[frame.file]}:{frame.line}"

    def _legend(self) -> Text:
        leaf, arrow = self.symbols.leaf, self.symbols.arrow
        words = (
            (self.direction, True),
            (f"{leaf} leaf (AccumulateGrad)", "leaf" in self.kinds),
            (f"{arrow} #n shown elsewhere", "reference" in self.kinds),
            ("cut: to hidden nodes", self.options.cut is not None),
            ("bytes held, % of all" if self.share_cells else "bytes held", bool(self.bytes_cells)),
        )
        legend = ""
        for text, is_used in words:
            longer = f"{legend} {self.symbols.separator} {text}" if legend else text
            if is_used and cell_len(longer) <= self.options.width:
                legend = longer
        return Text(legend, "dim", no_wrap=True, end="")


def _least(parts: Iterable[Part], *, has_whole_names: bool = False) -> int:
    """Return how wide a row is before a class is not spelled as elsewhere, or a name in it is cut: its start, or more.

    Args:
        parts: Of the row.
        has_whole_names: Whether a name keeps its start, which others may have, too.
    """
    shown = (part for part in parts if part.is_brief_last or not part.is_optional)
    return sum(
        cell_len(part.text if part.is_brief_last or (has_whole_names and part.can_shrink) else part.brief or part.text)
        for part in shown
    )


def _needed(parts: Iterable[Part]) -> int:
    return sum(cell_len(part.text) for part in parts if not part.is_optional or part.brief)
