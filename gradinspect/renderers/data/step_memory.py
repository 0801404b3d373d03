"""The memory of whole steps for machines: JSON with all figures."""

from gradinspect.analyses.memory.step import (
    By,
    StepMemory,
    by_device,
    bytes_by_kind,
    fits,
    groups_by,
    is_meant,
    to_make_room,
)
from gradinspect.analyses.selection.rows import ALL_ROWS, RowChoice
from gradinspect.renderers.data.json import render_json


def render_step_memory_json(memory: StepMemory, limit: int | None, by: By, choice: RowChoice = ALL_ROWS) -> str:
    """Write everything: the peak, when, of what, each step, the curve, and what is not counted."""
    return render_json({
        "source": memory.source,
        "torch_version": memory.torch_version,
        "measured": memory.is_real,
        "peak_bytes": memory.peak_bytes,
        "at": memory.at,
        "by_kind": bytes_by_kind(memory),
        "not_counted": memory.not_counted,
        "limit": limit,
        "fits": fits(memory, limit),
        "to_make_room": [] if limit is None else to_make_room(memory, limit),
        "by": by,
        "groups": groups_by(memory, by, choice)[: choice.top],
        "steps": memory.steps,
        "curve": memory.curve,
        "notes": memory.notes,
        "device": memory.device,
        "on": memory.on or None,
        "devices": [
            _device(one, limit if is_meant(memory, one) else None, by, choice) for one in by_device(memory) if one.on
        ],
        "rank": None if memory.place is None else memory.place.rank,
        "world_size": None if memory.place is None else memory.place.world_size,
        "collectives": memory.collectives,
    })  # fmt: skip


def _device(memory: StepMemory, limit: int | None, by: By, choice: RowChoice) -> dict[str, object]:
    """Write the figures of one device."""
    return {
        "on": memory.on,
        "peak_bytes": memory.peak_bytes,
        "at": memory.at,
        "by_kind": bytes_by_kind(memory),
        "fits": fits(memory, limit),
        "groups": groups_by(memory, by, choice)[: choice.top],
        "steps": memory.steps,
        "curve": memory.curve,
        "device": memory.device,
    }
