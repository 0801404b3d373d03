"""How records show themselves at a prompt."""

from collections.abc import Iterable
from functools import singledispatch

from rich.text import Text

from gradinspect.analyses.diff.records import GraphDiff
from gradinspect.analyses.memory.held import Memory
from gradinspect.analyses.memory.rows import left_out, rows_by_operator
from gradinspect.analyses.memory.step import StepMemory, on_device
from gradinspect.analyses.memory.tree import module_tree
from gradinspect.analyses.summary import describe_capture, summarize
from gradinspect.checks.findings import Findings
from gradinspect.checks.overview import Overview
from gradinspect.graph import Graph
from gradinspect.renderers.diff_words import Side
from gradinspect.renderers.diff_words import summary as diff_summary
from gradinspect.renderers.html.fragment import findings_fragment, graph_fragment, memory_fragment, text_fragment
from gradinspect.renderers.terminal.diff import DiffPage
from gradinspect.renderers.terminal.findings import FindingsPage
from gradinspect.renderers.terminal.memory.held import MemoryPage, fitting_depth
from gradinspect.renderers.terminal.memory.step import StepMemoryPage
from gradinspect.renderers.terminal.overview import OverviewPage
from gradinspect.renderers.terminal.summary import render_summary
from gradinspect.renderers.terminal.text import harmless
from gradinspect.renderers.terminal.trees.tree import TreeOptions, render_tree
from gradinspect.units import format_bytes, format_count

MAX_MODULE_ROWS = 40


@singledispatch
def line_of(_record: object) -> str:
    """Describe a record in one line, for `repr`."""
    raise NotImplementedError


@singledispatch
def page_of(_record: object) -> str:
    """Write what the command line prints of a record."""
    raise NotImplementedError


@singledispatch
def fragment_of(record: object) -> str:
    """Write a record for a notebook: its page, unless there is more to show."""
    return text_fragment(page_of(record))


fragment_of.register(Graph, graph_fragment)
fragment_of.register(Findings, findings_fragment)
fragment_of.register(Memory, memory_fragment)


@line_of.register
def graph_line(graph: Graph) -> str:
    """Describe a graph in one line, for `repr`."""
    figures = summarize(graph)
    sizes = f"{format_count(figures.nodes, 'node')}, {format_count(figures.leaves, 'leaf', 'leaves')}"
    held = f"{format_bytes(figures.held_bytes)} held"
    return str(harmless(f"<Graph of {graph.source}: {sizes}, {held}, {describe_capture(graph)}>"))


@page_of.register
def graph_page(graph: Graph, *, depth: int | None = None, width: int = 80) -> str:
    """Write the figures and the tree of a graph."""
    tree = render_tree(graph, TreeOptions(width=width, depth=depth, names_options=False))
    return _joined((*render_summary(summarize(graph), width=width, names_options=False).split("\n"), Text(), *tree))


@line_of.register
def findings_line(found: Findings) -> str:
    """Describe findings in one line, for `repr`."""
    codes = ", ".join(dict.fromkeys(finding.code for finding in found.findings))
    number = format_count(len(found.findings), "finding")
    return str(harmless(f"<Findings of {found.source}: {number}{': ' if codes else ''}{codes}>"))


@page_of.register
def findings_page(found: Findings, *, width: int = 80) -> str:
    """Write the report of `check`."""
    return _joined(FindingsPage(width=width).lines(found))


@line_of.register
def diff_line(found: GraphDiff) -> str:
    """Describe what changed in one line, for `repr`."""
    return f"<GraphDiff: {diff_summary(found)}>"


@page_of.register
def diff_page(found: GraphDiff, *, width: int = 80) -> str:
    """Write the report of `diff`."""
    return _joined(DiffPage(width=width).lines(found, (Side("before", ""), Side("after", "")), ()))


@page_of.register  # a page needs the graph: `memory_page`
@line_of.register
def memory_line(memory: Memory) -> str:
    """Describe what is held in one line, for `repr`."""
    number = format_count(len(memory.storages), "storage")
    return f"<Memory: {format_bytes(memory.extra_bytes)} held for backward, in {number}>"


def memory_page(graph: Graph, memory: Memory, *, max_rows: int | None = None, width: int = 80) -> str:
    """Write what is held: by module if modules are known, else by operator."""
    page = MemoryPage(width=width)
    if graph.modules:
        tree = module_tree(graph, memory)
        depth = fitting_depth(tree, max_rows or MAX_MODULE_ROWS)
        rows = page.modules(tree, memory.extra_bytes, depth, graph.model_name)
    else:
        shown, rest = left_out(rows_by_operator(graph, memory), max_rows)
        rows = page.table("operator", shown, rest, memory.extra_bytes)
    return _joined((*page.head(memory, graph), Text(), *rows))


@line_of.register
def step_memory_line(memory: StepMemory) -> str:
    """Describe the memory of a step in one line, for `repr`."""
    return str(harmless(f"<StepMemory of {memory.source}: peak {format_bytes(memory.peak_bytes)}{on_device(memory)}>"))


@line_of.register
def overview_line(found: Overview) -> str:
    """Describe the headlines of a run in one line, for `repr`."""
    findings = "" if found.findings is None else f", {format_count(len(found.findings), 'finding')}"
    nodes = format_count(len(found.graph.nodes), "node")
    return str(harmless(f"<Overview of {found.source}: {nodes}{findings}>"))


@page_of.register
def overview_page(found: Overview, *, width: int = 80) -> str:
    """Write the headlines of a run."""
    return _joined(OverviewPage(width=width).lines(found))


@page_of.register
def step_memory_page(memory: StepMemory, limit: int | None = None, *, width: int = 80) -> str:
    """Write the report of `fit`."""
    return _joined(StepMemoryPage(width=width).lines(memory, limit, "module"))


def _joined(lines: Iterable[Text]) -> str:
    return "\n".join(str(harmless(line)).rstrip() for line in lines)
