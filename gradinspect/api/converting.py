"""A graph as an object of another library, if that is installed."""

import importlib
from typing import Any

from gradinspect.analyses.selection.attributes import plain_edges, plain_nodes
from gradinspect.analyses.selection.finding import find_nodes
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph


def to_networkx(graph: Graph) -> Any:  # noqa: ANN401  # networkx.MultiDiGraph, which may not be installed
    """Make a `networkx.MultiDiGraph`, with one edge for each entry of `next_edges` that is not None."""
    made = _required("networkx").MultiDiGraph(source=graph.source, torch_version=graph.torch_version)
    for node in plain_nodes(graph):
        made.add_node(node.id, **node.attributes)
    for edge in plain_edges(graph):
        made.add_edge(edge.source, edge.target, **edge.attributes)
    return made


def to_pandas(graph: Graph) -> Any:  # noqa: ANN401  # pandas.DataFrame, which may not be installed
    """Make a `pandas.DataFrame` with one row per node."""
    return _required("pandas").DataFrame(_columns(graph)).set_index("id")


def to_polars(graph: Graph) -> Any:  # noqa: ANN401  # polars.DataFrame, which may not be installed
    """Make a `polars.DataFrame` with one row per node."""
    return _required("polars").DataFrame(_columns(graph))


def _columns(graph: Graph) -> dict[str, list[object]]:
    rows = find_nodes(graph)
    columns = {name: [getattr(row, name) for row in rows] for name in ("id", "name", "module", "line", "held_bytes")}
    columns["outputs"] = [", ".join(row.outputs) for row in rows]
    columns["leaf"] = [row.leaf for row in rows]
    columns["statuses"] = [", ".join(row.statuses) for row in rows]
    return columns


def _required(name: str) -> Any:  # noqa: ANN401  # a module
    """Import a package that is not one of our dependencies.

    Raises:
        GradInspectError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise GradInspectError(f"'{name}' is not installed.", f"Install it: pip install {name}") from None
