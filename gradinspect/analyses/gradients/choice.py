"""What rows of the gradient tables can be chosen and sorted by: the same names in each, as far as a row has them."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from gradinspect.analyses.gradients.observed import FlowRow, ParameterRow, arriving_norm, known
from gradinspect.analyses.gradients.steps import Move
from gradinspect.analyses.gradients.timeline import NodeSlice
from gradinspect.analyses.selection.conditions import Value
from gradinspect.analyses.selection.node_conditions import fields_of_nodes
from gradinspect.analyses.selection.rows import Fields, RowChoice, chosen_rows
from gradinspect.analyses.structure.call_names import short_name, shown_path
from gradinspect.analyses.structure.node_names import module_names
from gradinspect.graph import GradientStats, Graph, NodeGradients, module_name

T = TypeVar("T")
_NAMES: Final = ("class", "line", "max", "module", "ms", "name", "norm", "update", "weight", "zeros")


def chosen_flow(graph: Graph, rows: Sequence[FlowRow], choice: RowChoice) -> tuple[FlowRow, ...]:
    """Choose rows of module calls.

    Raises:
        GradInspectError: The options name something that is not there.
    """
    fields: Fields[FlowRow] = {
        "class": lambda row: (row.class_name,),
        "module": lambda row: (module_name(graph, row.path), short_name(row.path, None, graph.model_name)),
        "name": lambda row: (short_name(row.path, None, graph.model_name),),
        **_of_stats(lambda row: row.stats),
    }
    return _chosen(graph, rows, fields, choice)


def chosen_parameters(graph: Graph, rows: Sequence[ParameterRow], choice: RowChoice) -> tuple[ParameterRow, ...]:
    """Choose rows of leaves.

    Raises:
        GradInspectError: The options name something that is not there.
    """
    fields: Fields[ParameterRow] = {
        "module": lambda row: (_module_of(graph, row.name),),
        "name": lambda row: (row.name, shown_path(row.name, graph.model_name)),
        "weight": lambda row: (row.ratio,),
        "update": lambda row: (row.update_ratio,),
        **_of_stats(lambda row: row.stats),
    }
    return _chosen(graph, rows, fields, choice)


def chosen_moves(graph: Graph, rows: Sequence[Move], choice: RowChoice) -> tuple[Move, ...]:
    """Choose rows of parameters through several calls, by the last call that has them.

    Raises:
        GradInspectError: The options name something that is not there.
    """

    def last(move: Move) -> ParameterRow | None:
        return next((row for row in reversed(move.rows) if row is not None), None)

    fields: Fields[Move] = {
        "module": lambda move: (_module_of(graph, move.name),),
        "name": lambda move: (move.name, shown_path(move.name, graph.model_name)),
        **_of_stats(lambda move: None if (row := last(move)) is None else row.stats),
    }
    return _chosen(graph, rows, fields, choice)


def chosen_nodes_that_ran(graph: Graph, rows: Sequence[NodeGradients], choice: RowChoice) -> tuple[NodeGradients, ...]:
    """Choose rows of nodes.

    Raises:
        GradInspectError: The options name something that is not there.
    """
    fields: Fields[NodeGradients] = {
        **fields_of_nodes(graph, lambda row: row.node),
        "ms": lambda row: () if row.seconds is None else (row.seconds * 1e3,),
        "norm": lambda row: (arriving_norm(row),),
        "zeros": lambda row: [stats.zero_share for stats in known(row.outgoing)],
    }
    return _chosen(graph, rows, fields, choice)


def chosen_slices(graph: Graph, rows: Sequence[NodeSlice], choice: RowChoice) -> tuple[NodeSlice, ...]:
    """Choose rows of timed nodes.

    Raises:
        GradInspectError: The options name something that is not there.
    """
    fields: Fields[NodeSlice] = {
        **fields_of_nodes(graph, lambda row: row.node),
        "ms": lambda row: (row.seconds * 1e3,),
    }
    return _chosen(graph, rows, fields, choice)


def _chosen(graph: Graph, rows: Sequence[T], fields: Fields[T], choice: RowChoice) -> tuple[T, ...]:
    return chosen_rows(rows, {**dict.fromkeys(_NAMES, _nothing), **fields}, choice, module_names(graph))


def _nothing(_row: object) -> Sequence[Value]:
    return ()


def _of_stats(stats_of: Callable[[T], GradientStats | None]) -> Fields[T]:
    def read(field: Callable[[GradientStats], float]) -> Callable[[T], Sequence[Value]]:
        return lambda row: () if (stats := stats_of(row)) is None else (field(stats),)

    return {
        "max": read(lambda stats: stats.max_abs),
        "norm": read(lambda stats: stats.norm),
        "zeros": read(lambda stats: stats.zero_share),
    }


def _module_of(graph: Graph, name: str) -> str:
    """Name the module of a parameter."""
    return name.rpartition(".")[0] or graph.model_name
