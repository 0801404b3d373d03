"""The memory of whole steps as one self-contained HTML file: the curve, and who is alive at the moment that is clicked.

What comes in: a `StepMemory`. What goes out: the page, under the same policy as that of a graph.
"""

from typing import Final

from gradinspect.analyses.memory.step import (
    KIND_NAMES,
    KINDS,
    CurvePoint,
    Span,
    StepMemory,
    by_device,
    device_name,
    is_meant,
    moment_name,
    peak_of,
    peak_place,
)
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.renderers.data.json import json_text
from gradinspect.renderers.html.data import harmless
from gradinspect.renderers.html.page import page_document
from gradinspect.renderers.picture.charts import HEIGHT, LEFT, MARGIN, TOP, WIDTH
from gradinspect.renderers.picture.step_curve import render_step_curve
from gradinspect.units import escape_control, format_beside, format_bytes

SCRIPTS: Final = ("dom", "step")
WIDTHS: Final = (WIDTH, 400)  # of the curve, on a wide screen and on a phone


def render_step_page(memory: StepMemory, limit: int | None = None) -> str:
    """Write the page."""
    of_limit = "" if limit is None else f", limit {format_beside(limit, memory.peak_bytes)}"
    notes = (memory.made_up, memory.values_from, *memory.notes)
    page = {
        "title": escape_control(memory.source),
        "figures": escape_control(f"peak {peak_of(memory, limit)}{of_limit}, torch {memory.torch_version}"),
        "notes": escape_control(" ".join(filter(None, notes))),
        "left_out": f"Not counted: {', '.join(memory.not_counted)}.",
        "left": LEFT,
        "margin": MARGIN,
        "top": TOP,
        "height": HEIGHT,
        "kinds": [KIND_NAMES[kind] for kind in KINDS],
        "devices": [_device(memory, one, limit) for one in by_device(memory)],
    }
    content = harmless(json_text(page, separators=(",", ":")))
    return "".join(page_document(f"{memory.source} · gradinspect", "step.css", "step.html", SCRIPTS, (content,)))


def _device(memory: StepMemory, one: StepMemory, limit: int | None) -> dict[str, object]:
    """Write what is shown when a device is chosen."""
    return {
        "name": escape_control(f"{device_name(one.on)}: peak {format_bytes(one.peak_bytes)}"),
        "pictures": [
            render_step_curve(
                one, limit if is_meant(memory, one) else None, is_one_of_many=bool(memory.others), width=width
            )
            for width in WIDTHS
        ],
        "points": list(map(_point, one.curve)),
        "spans": [_span(span, one.model_name) for span in one.spans],
        "peak": peak_place(one),
    }


def _point(point: CurvePoint) -> list[object]:
    return [moment_name(point), point.num_bytes, [point.by_kind.get(kind, 0) for kind in KINDS]]


def _span(span: Span, model: str) -> list[object]:
    made = span.made
    what = span.name or made.node or made.op.removesuffix(".default") or "unknown operator"
    return [
        span.first,
        span.last,
        span.num_bytes,
        KINDS.index(span.kind),
        *map(escape_control, (what, made.module and shown_path(made.module, model), made.line, made.code)),
        span.num_storages,
    ]
