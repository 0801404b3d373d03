"""Color the boxes of a picture by gradient norm or bytes held.

What comes in: a `Graph`, and the ranges of node ids that a picture shows as one. What goes out: a `Look` for each
range, and the `Swatch`es that explain the looks.

To add a coloring, write a function that returns a `Coloring`, and add it to `COLORINGS`.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from gradinspect.analyses.gradients.observed import arriving_norm, gradients_of, parameter_rows
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.graph import Graph
from gradinspect.renderers.picture.colors.kinds import (
    color_by_device,
    color_by_dtype,
    color_by_file,
    color_by_module,
)
from gradinspect.renderers.picture.colors.looks import BLACK, Coloring, LogRamp, Look, Swatch
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.plan.parts import ColorBy
from gradinspect.units import format_bytes, format_flops


def no_gradient(palette: Palette) -> Look:
    """Return the look of a node that no gradient reached."""
    return Look(palette.card, "no gradient reached it", "no gradient", palette.card_line, "dashed", "-")


def zero(palette: Palette) -> Look:
    """Return the look of a gradient that is exactly zero."""
    return Look(palette.card, "the gradient is exactly zero", "norm 0", palette.zero_line, "", "0")


def not_finite(palette: Palette) -> Look:
    """Return the look of a gradient with NaN or Inf."""
    return Look(palette.alarm, "the gradient contains NaN or Inf", "NaN or Inf", BLACK, "", "!")


def color_by_gradient(graph: Graph, _drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the norm of the incoming gradient; for a collapsed module, at its output."""
    norms = {ran.node: arriving_norm(ran) for ran in gradients_of(graph).nodes}
    leaves = {row.node: None if row.stats is None else row.stats.norm for row in parameter_rows(graph)}
    every = [norm for norm in (*norms.values(), *leaves.values()) if norm is not None]
    ramp = LogRamp(every, palette.ramp)

    def filled(norm: float | None) -> Look:
        if norm is None:
            return no_gradient(palette)
        if not math.isfinite(norm):
            return not_finite(palette)
        return zero(palette) if norm == 0 else Look(ramp.fill(norm), f"gradient norm {norm:.1e}", f"norm {norm:.1e}")

    def look(ids: range) -> Look:
        inside = [norm for node in ids if (norm := norms.get(node)) is not None]
        bad = next((norm for norm in inside if not math.isfinite(norm)), None)
        return filled(bad if bad is not None else inside[0] if inside else None)

    looks = {look.words: look for look in map(filled, [*(norms.get(n) for n in range(len(graph.nodes))), *every])}
    marks = (
        (zero(palette), "0", "exactly zero"),
        (no_gradient(palette), "none", "no gradient"),
        (not_finite(palette), "NaN", "NaN or Inf"),
    )
    return Coloring(
        look=look,
        leaf=lambda node: filled(leaves.get(node)),
        title="color: norm of the incoming gradient, log scale",
        scale=ramp.swatches("{:.0e}".format),
        marks=tuple(Swatch(*mark) for mark in marks if mark[0].words in looks),
    )


def color_by_bytes(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the bytes held for backward, each storage counted once."""
    held_before = list(accumulate(held_bytes_by_node(graph), initial=0))
    totals = [held_before[ids.stop] - held_before[ids.start] for ids in drawn]
    ramp = LogRamp(totals, palette.ramp)
    nothing = Look(palette.card, "nothing held")

    def look(ids: range) -> Look:
        total = held_before[ids.stop] - held_before[ids.start]
        return Look(ramp.fill(total), f"{format_bytes(total)} held") if total else nothing

    return Coloring(
        look=look,
        leaf=lambda _: Look(palette.card, ""),
        title="color: bytes held for backward, log scale",
        scale=ramp.swatches(lambda value: format_bytes(round(value))),
        marks=(Swatch(nothing, "0 B", "nothing held"),) if 0 in totals else (),
    )


def color_by_flops(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the FLOPs of the forward ops and of their backward, where torch has formulas."""
    before = list(accumulate(((node.flops or 0) + (node.backward_flops or 0) for node in graph.nodes), initial=0))
    totals = [before[ids.stop] - before[ids.start] for ids in drawn]
    ramp = LogRamp(totals, palette.ramp)
    unknown = Look(palette.card, "no formula for its FLOPs")

    def look(ids: range) -> Look:
        total = before[ids.stop] - before[ids.start]
        return Look(ramp.fill(total), f"{format_flops(total)}, forward and backward") if total else unknown

    return Coloring(
        look=look,
        leaf=lambda _: Look(palette.card, ""),
        title="color: FLOPs of forward and backward, log scale",
        scale=ramp.swatches(lambda value: format_flops(round(value))),
        marks=(Swatch(unknown, "-", "no formula"),) if 0 in totals else (),
    )


COLORINGS: dict[ColorBy, Callable[[Graph, Sequence[range], Palette], Coloring]] = {
    "grad": color_by_gradient,
    "bytes": color_by_bytes,
    "flops": color_by_flops,
    "dtype": color_by_dtype,
    "device": color_by_device,
    "module": color_by_module,
    "file": color_by_file,
}
