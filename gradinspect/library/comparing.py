"""`diff`: what changed between two graphs."""

from collections.abc import Sequence

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import Aspect, GraphDiff
from gradinspect.graph import Graph


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
