"""Plans and sizes for machines: JSON with all figures, and the code."""

from typing import Final

from gradinspect.analyses.planning.changes import Change, describe_plan, edits_of, is_exact
from gradinspect.analyses.planning.code import functions_of
from gradinspect.analyses.planning.report import (
    PlanReport,
    flops_ratio,
    lowest_sentence,
    modules_paste,
    optimizers_paste,
)
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.analyses.planning.size_pairs import PairTable
from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.data.table import Columns, fields

SIZES: Final[Columns[SizeTable]] = {
    **fields("source"),
    "search": lambda table: table.name,
    **fields("limit", "largest", "smallest", "rows", "not_counted", "notes"),
}
PAIRS: Final[Columns[PairTable]] = {
    **fields("source"),
    "search": lambda table: ",".join(table.names),
    **fields("limit", "rows", "not_counted", "notes"),
}


def render_plan_json(report: PlanReport) -> str:
    """Write the plans that fit, the cheapest first, and the one that needs least."""
    search = report.search
    return render_json({
        "source": report.source,
        "torch_version": report.torch_version,
        "limit": search.limit,
        "fits": report.fits,
        "peak_bytes": search.plain.peak_bytes,
        "on": search.plain.on or None,
        "plans": [_plan(report, outcome, is_tried=not n) for n, outcome in enumerate(search.fitting)],
        "front": [_plan(report, outcome, is_tried=False) for outcome in search.front],
        "lowest": _plan(report, search.lowest, is_tried=False),
        "sentence": "" if search.fitting else lowest_sentence(report),
        "num_runs": search.num_runs,
        "tried": search.tried,
        "is_cut": search.is_cut,
        "not_counted": report.not_counted,
        "stepping_refused": report.stepping_refused or None,
        "held": report.held,
        "other_states": report.other_states,
        "notes": [*report.search.refused, *report.notes, *report.failures],
    })  # fmt: skip


def _change(change: Change) -> dict[str, object]:
    """Say of which kind a change is: several have the same fields."""
    return {"kind": change.__struct_config__.tag, **{name: getattr(change, name) for name in change.__struct_fields__}}


def _plan(report: PlanReport, outcome: PlanOutcome, *, is_tried: bool) -> dict[str, object]:
    plan: dict[str, object] = {
        "change": describe_plan(outcome.plan),
        "changes": [_change(change) for change in outcome.plan.changes],
        "peak_bytes": outcome.peak_bytes,
        "on": outcome.on or None,
        "backward_bytes": outcome.backward_bytes,
        "moved_bytes": outcome.moved_bytes,
        "flops_ratio": flops_ratio(outcome, report.search.plain),
        "num_changes": outcome.plan.num_changes,
        "exact": is_exact(outcome.plan),
        "at": outcome.at,
        "alive": outcome.alive,
        "largest": outcome.largest,
        "edits": [str(edit) for edit in edits_of(outcome.plan)],
        "functions": functions_of(outcome.plan),
        "code": modules_paste(report, outcome).code,
        "optimizer_code": optimizers_paste(outcome).code,
    }
    trial = report.trial
    if trial is None or not is_tried:
        return plan
    return plan | {
        "measured_peak_bytes": trial.measured_peak_bytes,
        "plain_measured_peak_bytes": trial.plain_peak_bytes,
        "seconds": trial.seconds,
        "plain_seconds": trial.plain_seconds,
        "bit_equal": trial.bit_equal,
        "compared": "parameters" if trial.is_of_parameters else "gradients",
        "num_gradients": trial.num_compared,
        "num_different": trial.num_different,
        "difference": trial.difference,
    }
