"""The headlines of one run for machines: JSON with the figures that the screen shows, and their parts."""

from gradinspect.analyses.gradients.observed import (
    compiled_notes,
    fall_of,
    gradient_notes,
    unmeasured_notes,
)
from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.step import bytes_by_kind
from gradinspect.analyses.memory.tree import module_tree
from gradinspect.analyses.summary import summarize
from gradinspect.checks.overview import Overview
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.findings.findings import FINDINGS
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.data.memory import TOTALS
from gradinspect.renderers.data.summary import SUMMARY
from gradinspect.renderers.data.table import figures


def render_overview_json(found: Overview) -> str:
    """Write all headlines; what was not looked at is null, and `no_memory` says why."""
    memory, findings = found.step_memory, found.findings
    peak = None if memory is None else {
        "bytes": memory.peak_bytes, "at": memory.at, "whole_steps": found.whole_steps,
        "by_kind": bytes_by_kind(memory), "on": memory.on or None
    }  # fmt: skip
    least = found.least_memory
    bound = None if least is None else {
        "bytes": least.num_bytes, "at": least.at, "by_kind": least.by_kind, "on": least.on
    }  # fmt: skip
    return render_json({
        "source": found.source,
        "other_calls": found.other_calls,
        "graph": figures(summarize(found.whole), SUMMARY),
        "memory": _held(found.whole),
        "check": None if findings is None else figures(findings, FINDINGS),
        "gradients": _gradients(found.graph),
        "peak": peak,
        "no_peak": found.no_memory or None,
        "peak_at_least": bound,
    })  # fmt: skip


def _held(graph: Graph) -> object:
    try:
        held = measure_memory(graph)
    except GradInspectError:  # there are no bytes to count
        return None
    modules = [
        {"module": module.path or module.label, "copies": module.copies, "bytes": module.total_bytes}
        for module in module_tree(graph, held)
    ]
    return {**figures(held, TOTALS), "modules": modules}


def _gradients(graph: Graph) -> object:
    if graph.gradients is None:
        return None
    return {
        "loss": graph.gradients.loss,
        "notes": gradient_notes(graph),
        "fall": fall_of(graph),
        "unmeasured": (*compiled_notes(graph), *unmeasured_notes(graph)),
    }
