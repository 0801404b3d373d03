"""Lines for the explorer's panel: facts, links to nodes, titles.

What comes in: a `Graph`, and functions that look up formulas and source lines. What goes out: lines, some of which
link to a node.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, TypeAlias, TypedDict

from rich.cells import cell_len, chop_cells
from rich.text import Text

from gradinspect.analyses.explain.explanation import Explanation
from gradinspect.analyses.structure.call_names import leaf_shown
from gradinspect.graph import Graph, Node, NodeGradients, consumers
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import wrap
from gradinspect.renderers.terminal.trees.tree_words import ASCII_SYMBOLS, Symbols
from gradinspect.source import ReadSource
from gradinspect.units import format_count, format_tensor

MAX_LISTED = 200
LABEL_CELLS = 10
MIN_WRAPPED = 20

Explain: TypeAlias = Callable[[str], Explanation | None]  # class name -> what it computes


class PageLine(NamedTuple):
    """One line, and the node it links to."""

    text: Text
    target: int | None = None


class Facts:
    """Lookup tables for the pages of one graph."""

    def __init__(self, graph: Graph, explain: Explain, read_source: ReadSource) -> None:
        """Collect the users of each node."""
        self.graph = graph
        self.explain = explain
        self.read_source = read_source
        ran = () if graph.gradients is None else graph.gradients.nodes
        self.gradients: dict[int, NodeGradients] = {gradients.node: gradients for gradients in ran}
        self.users = consumers(graph)


class PageStyle(TypedDict):
    """How to write pages."""

    width: int
    unicode: bool
    is_compact: bool  # no empty line above a title


class PanelPage(Page):
    """Writes lines about one graph at one width."""

    def __init__(self, facts: Facts, *, width: int = 80, unicode: bool = True, is_compact: bool = False) -> None:
        """Set the page style."""
        super().__init__(width=width, unicode=unicode)
        self.is_compact = is_compact
        self.facts = facts
        self.graph = facts.graph
        self.symbols = Symbols() if unicode else ASCII_SYMBOLS

    def warnings(self) -> Iterator[PageLine]:
        """Yield the warnings from recording the graph."""
        yield self.short_line(format_count(len(self.graph.warnings), "warning"), "bold")
        for warning in self.graph.warnings:
            yield from self.flowing(warning, "yellow")

    def outputs(self, node: Node) -> str:
        """Describe the outputs of the forward op."""
        shown = ["none" if info is None else format_tensor(info) for info in node.forward_outputs]
        parts = [(text, len(list(same))) for text, same in groupby(shown)]
        return self.visible(
            ", ".join(f"{count:,} {self.symbols.times} {text}" if count > 1 else text for text, count in parts)
        )

    def more(self, count: int) -> Iterator[PageLine]:
        """Say how many items of a list are not shown."""
        if count > MAX_LISTED:
            yield self.short_line(f"{GAP}and {count - MAX_LISTED:,} more", "dim")

    def link(self, node_id: int, before: str, note: str) -> PageLine:
        """Write a line that links to a node, dropping what does not fit from the right."""
        node = self.graph.nodes[node_id]
        line = Text(f"{GAP}{self.fit(before, self.width // 2)}")
        after = f"{GAP}{self.visible(note)}" if note else ""
        if node.leaf is not None:
            name = f"{self.symbols.leaf} {leaf_shown(self.graph, node.leaf) or f'#{node_id}'}"
            looks, style = self.visible(format_tensor(node.leaf.info)), "yellow"
        else:
            name, style = f"#{node_id} {node.name}", "cyan"
            looks = self.outputs(node)
        line.append(self.fit(name, self.width - line.cell_len), style)
        for text, look in ((f"{GAP}{looks}", "green"), (after, "dim")):
            if line.cell_len + cell_len(text) <= self.width:
                line.append(text, look)
        return PageLine(line, node_id)

    def labeled(self, label: str, text: str) -> Iterator[PageLine]:
        """Yield a labeled fact on as many lines as it needs; nothing for an empty text."""
        for index, line in enumerate(self._wrap(text, " " * LABEL_CELLS)):
            head = Text().append(f"{label if index == 0 else '':<{LABEL_CELLS}}", "dim")
            yield PageLine(head.append(line[LABEL_CELLS:]))

    def section(self, title: str, lines: Iterable[PageLine]) -> Iterator[PageLine]:
        """Yield lines under a title; nothing if there are no lines."""
        for index, line in enumerate(lines):
            if index == 0 and not self.is_compact:
                yield PageLine(Text())
            if index == 0:
                yield self.short_line(title, "bold underline")
            yield line

    def flowing(self, text: str, style: str = "", *, indent: str = "") -> Iterator[PageLine]:
        """Yield a text on as many lines as it needs."""
        yield from (PageLine(Text(line, style)) for line in self._wrap(text, indent))

    def _wrap(self, text: str, indent: str) -> Iterator[str]:
        """Break between words, and within words where wide characters exceed the width."""
        width = max(self.width, MIN_WRAPPED)
        words = self.visible(text.replace("\n", " "))
        for line in wrap(words, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False):
            first, *others = chop_cells(line, width) if cell_len(line) > width else [line]
            yield first
            yield from (indent + part for rest in others for part in chop_cells(rest, width - len(indent)))

    def short_line(self, text: str, style: str = "") -> PageLine:
        """Write one line, cutting its middle if it is too long."""
        return PageLine(Text(self.fit(text, self.width), style))
