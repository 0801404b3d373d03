"""The memory of whole steps for machines: JSON with all figures."""

from typing import Final

from gradinspect.analyses.memory.step import (
    By,
    PeakGroup,
    StepMemory,
    by_device,
    bytes_by_kind,
    fits,
    folded_groups,
    is_meant,
    odd_group,
    to_make_room,
)
from gradinspect.analyses.selection.rows import ALL_ROWS, RowChoice
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.data.table import Columns, all_fields, fields, figures

_PEAK: Final[Columns[StepMemory]] = {**fields("peak_bytes", "at"), "by_kind": bytes_by_kind}
_HEAD: Final[Columns[StepMemory]] = {
    **fields("source", "torch_version"),
    "measured": lambda memory: memory.is_real,
    **_PEAK,
    **fields("not_counted"),
}
_REST: Final[Columns[StepMemory]] = {
    **fields("steps", "curve", "notes", "device"),
    "values_from": lambda memory: memory.values_from or None,
    **fields("is_bound", "is_least"),
    "on": lambda memory: memory.on or None,
}
_GROUP: Final = all_fields(PeakGroup)
_OF_A_DEVICE: Final[Columns[StepMemory]] = {**fields("on"), **_PEAK}


def render_step_memory_json(memory: StepMemory, limit: int | None, by: By, choice: RowChoice = ALL_ROWS) -> str:
    """Write everything: the peak, when, of what, each step, the curve, and what is not counted."""
    place = memory.place
    return render_json({
        **figures(memory, _HEAD),
        "limit": limit,
        "fits": fits(memory, limit),
        "to_make_room": [] if limit is None else to_make_room(memory, limit),
        "by": by,
        "groups": _groups(memory, by, choice),
        **figures(memory, _REST),
        "devices": [
            _device(one, limit if is_meant(memory, one) else None, by, choice) for one in by_device(memory) if one.on
        ],
        "rank": None if place is None else place.rank,
        "world_size": None if place is None else place.world_size,
        "collectives": memory.collectives,
    })  # fmt: skip


def _groups(memory: StepMemory, by: By, choice: RowChoice) -> list[dict[str, object]]:
    """Write the rows of the screen; of equal blocks, their number, the least and the most, and the odd one."""
    return [
        {
            **figures(together, _GROUP),
            "times": len(same),
            "least_bytes": min(sizes),
            "most_bytes": max(sizes),
            "odd_one": odd_group(same),
        }
        for together, same in folded_groups(memory, by, choice)[: choice.top]
        if (sizes := [group.num_bytes for group in same])
    ]


def _device(memory: StepMemory, limit: int | None, by: By, choice: RowChoice) -> dict[str, object]:
    """Write the figures of one device."""
    return {
        **figures(memory, _OF_A_DEVICE),
        "fits": fits(memory, limit),
        "groups": _groups(memory, by, choice),
        **figures(memory, fields("steps", "curve", "device")),
    }
