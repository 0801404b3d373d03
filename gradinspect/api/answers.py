"""What graphs answer: the figures of one, its saved values, what it holds, and what differs between two."""

from collections.abc import Sequence

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import Aspect, GraphDiff
from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.analyses.memory.saved_rows import SAVED_FIELDS, SavedRow, saved_rows
from gradinspect.analyses.selection.node_conditions import chosen_nodes
from gradinspect.analyses.selection.rows import RowChoice, chosen_rows
from gradinspect.analyses.structure.node_names import module_names
from gradinspect.analyses.summary import Summary, summarize
from gradinspect.api.showing import graph_page
from gradinspect.graph import Graph


def summary(graph: Graph) -> Summary:
    """Count what is in a graph: nodes, edges, leaves, the longest path, and the bytes held by origin."""
    return summarize(graph)


def tree(graph: Graph, *, depth: int | None = None, width: int = 80) -> str:
    """Write a graph as text: its figures, and the tree from the loss to the leaves.

    Args:
        graph: The graph.
        depth: Expand modules this deep; by default, so that about forty rows are shown.
        width: Columns.
    """
    return graph_page(graph, depth=depth, width=width)


def saved(
    graph: Graph, *, where: str | None = None, module: str | None = None, sort: str | None = None
) -> tuple[SavedRow, ...]:
    """List every saved attribute (`_saved_*`) of every node.

    Args:
        graph: The graph.
        where: A condition: `"bytes>1MiB and class~Conv*"`.
        module: Only what is in modules that this pattern matches: `"h.*.attn"`.
        sort: A field, such as `"bytes"`; numbers from the largest. By default, the order of the nodes.

    Returns:
        One row per saved value. `num_bytes` is that of whole storages; `own_bytes` adds up to the bytes held.

    Raises:
        GradInspectError: A field is unknown, no module matches, or the condition cannot be read.
    """
    return chosen_rows(saved_rows(graph), SAVED_FIELDS, RowChoice(None, module, where, sort), module_names(graph))


def memory(graph: Graph, *, where: str | None = None, module: str | None = None) -> Memory:
    """Find what is held in memory for backward, each storage once.

    Args:
        graph: The graph.
        where: Only what nodes hold for which this is true: `"class~Conv*"`.
        module: Only what is held in modules that this pattern matches: `"h.*.attn"`.

    Returns:
        `extra_bytes` are held because of backward; `total_bytes` has parameters and buffers too, which are in memory
        anyway. `storages` has each with its bytes, kind, and the nodes that save it.

    Raises:
        GradInspectError: No module matches, the condition cannot be read, or the graph was freed before its record.
    """
    return measure_memory(graph, chosen_nodes(graph, module, where))


def diff(before: Graph, after: Graph, *, ignore: Sequence[Aspect] = ()) -> GraphDiff:
    """Compare two graphs: nodes, shapes, saved values, leaves and modules that differ.

    Args:
        before: The first graph, A.
        after: The second graph, B.
        ignore: What is no difference: `"bytes"`, `"lines"`, `"order"` or `"values"`.

    Returns:
        The differences; `str(...)` is the report, as `gradinspect diff` prints it. `is_empty` says if there are none.
    """
    return diff_graphs(before, after, frozenset(ignore))
