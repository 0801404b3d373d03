"""Gradients for machines: of one backward call, of several, and by bucket."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from gradinspect.analyses.gradients.buckets import BucketReport, BucketRow, bucket_notes, bucket_rows, num_nodes_run
from gradinspect.analyses.gradients.observed import (
    GradientNote,
    ParameterRow,
    compiled_notes,
    gradients_of,
    nodes_by_order,
    unmeasured_notes,
)
from gradinspect.analyses.gradients.steps import GradientStep, GradientSteps
from gradinspect.analyses.summary import describe_capture, passed_over
from gradinspect.graph import GradientStats, Graph, Measured, NodeGradients, source_of, stats_of
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.data.table import Columns, Table, all_fields, fields, figures


class NodeGradient(NamedTuple):
    """One gradient that a node received or returned."""

    graph: Graph
    ran: NodeGradients
    direction: str  # "in" or "out"
    position: int
    gradient: Measured


class ParameterStep(NamedTuple):
    """The gradient of a parameter at one of several calls."""

    step: GradientStep
    row: ParameterRow


def _stats(field: str, stats: GradientStats | None) -> object:
    """Return one field; empty for no statistics."""
    if stats is None:
        return ""
    return "x".join(map(str, stats.shape)) if field == "shape" else getattr(stats, field)


def _of_gradient(field: str, row: NodeGradient) -> object:
    return _stats(field, stats_of(row.gradient))


def _of_parameter(field: str, row: ParameterStep) -> object:
    return _stats(field, row.row.stats)


def _or_empty(field: str, row: ParameterStep) -> object:
    value = getattr(row.row, field)
    return "" if value is None else value


def _module(row: NodeGradient) -> str:
    module = row.graph.nodes[row.ran.node].module
    return "" if module is None else row.graph.modules[module].path


GRADIENTS: Final[Table[NodeGradient]] = Table({
    "node": lambda row: row.ran.node,
    "order": lambda row: row.ran.order,
    "name": lambda row: row.graph.nodes[row.ran.node].name,
    "module": _module,
    "source": lambda row: source_of(row.graph, row.graph.nodes[row.ran.node]) or "",
    "direction": lambda row: row.direction,
    "position": lambda row: row.position,
    **{field: partial(_of_gradient, field) for field in GradientStats.__struct_fields__},
    "unmeasured": lambda row: row.gradient if isinstance(row.gradient, str) else "",
})  # fmt: skip
STEPS: Final[Table[ParameterStep]] = Table({
    "call": lambda row: row.step.number,
    "parameter": lambda row: row.row.name,
    "node": lambda row: row.row.node,
    **{field: partial(_of_parameter, field) for field in GradientStats.__struct_fields__},
    "weight_norm": partial(_or_empty, "weight_norm"),
    "gradient/weight": partial(_or_empty, "ratio"),
    "update_norm": partial(_or_empty, "update_norm"),
    "update/weight": partial(_or_empty, "update_ratio"),
    "unmeasured": lambda row: row.row.unmeasured or "",
})  # fmt: skip
_PARAMETER: Final[Columns[ParameterRow]] = {**all_fields(ParameterRow), **fields("ratio", "update_ratio")}


def gradient_rows(graph: Graph, nodes: Sequence[NodeGradients]) -> Iterator[NodeGradient]:
    """List what each node received and returned, in the order given."""
    for ran in nodes:
        for direction, gradients in (("in", ran.incoming), ("out", ran.outgoing)):
            for position, gradient in enumerate(gradients):
                if gradient is not None:
                    yield NodeGradient(graph, ran, direction, position, gradient)


def step_rows(found: GradientSteps) -> Iterator[ParameterStep]:
    """List each parameter at each call."""
    return (ParameterStep(step, row) for step in found.steps for row in step.parameters)


def render_gradients_json(
    graph: Graph,
    captured_at: str,
    findings: Sequence[GradientNote],
    parameters: Sequence[ParameterRow],
    nodes: Sequence[NodeGradients],
) -> str:
    """Write the findings, the parameters, and each node with its gradients."""
    return render_json({
        "captured_at": captured_at,
        "loss": gradients_of(graph).loss,
        "findings": findings,
        "unmeasured": (*passed_over(graph), *compiled_notes(graph), *unmeasured_notes(graph)),
        "parameters": [figures(row, _PARAMETER) for row in parameters],
        "nodes": _nodes(graph, nodes),
    })  # fmt: skip


def render_steps_json(found: GradientSteps) -> str:
    """Write every call with its findings and parameters, and the nodes of the last call."""
    of_a_step = fields("number", "captured_at", "loss", "findings", "unmeasured")
    calls = [
        {**figures(step, of_a_step), "parameters": [figures(row, _PARAMETER) for row in step.parameters]}
        for step in found.steps
    ]
    nodes = _nodes(found.graph, nodes_by_order(found.graph))
    return render_json({"asked": found.asked, "unmeasured": passed_over(found.graph), "steps": calls, "nodes": nodes})


def _nodes(graph: Graph, nodes: Sequence[NodeGradients]) -> list[dict[str, object]]:
    of_a_node = all_fields(NodeGradients)
    return [{"name": graph.nodes[ran.node].name, **figures(ran, of_a_node)} for ran in nodes]


def render_buckets_json(report: BucketReport) -> str:
    """Write when each bucket is ready, with its parameters and the notes."""
    of_a_bucket = all_fields(BucketRow)
    models = [
        {
            "model": model.model,
            "is_rebuilt": model.is_rebuilt,
            "is_kept": model.is_kept,
            "cap_bytes": model.cap_bytes,
            "buckets": [
                {**figures(row, of_a_bucket), "parameters": parameters}
                for row, parameters in zip(bucket_rows(report.graph, model), model.buckets, strict=True)
            ],
            "notes": list(bucket_notes(report.graph, bucket_rows(report.graph, model))),
        }
        for model in report.models
    ]
    head = {"captured_at": describe_capture(report.graph), "rank": report.rank, "num_ranks": report.num_ranks}
    return render_json({**head, "num_nodes": num_nodes_run(report.graph), "models": models})
