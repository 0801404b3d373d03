"""Color the boxes of a picture by gradient norm or bytes held.

What comes in: a `Graph`, and the ranges of node ids that a picture shows as one. What goes out: a `Look` for each
range, and the `Swatch`es that explain the looks.

To add a coloring, write a function that returns a `Coloring`, and add it to `COLORINGS`.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from gradinspect.analyses.gradients.observed import arriving_norm, gradients_of, parameter_rows
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.graph import Graph
from gradinspect.renderers.picture.colors.kinds import (
    color_by_device,
    color_by_dtype,
    color_by_file,
    color_by_module,
)
from gradinspect.renderers.picture.colors.looks import BLACK, Coloring, Look, Ramp, Swatch, log_ramp
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
    ramp = log_ramp(every, palette.ramp)

    def filled(norm: float | None) -> Look:
        if norm is None:
            return no_gradient(palette)
        if not math.isfinite(norm):
            return not_finite(palette)
        if norm == 0 or ramp is None:
            return zero(palette)
        return Look(ramp.at(math.log10(norm)), f"gradient norm {norm:.1e}", f"norm {norm:.1e}")

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
        scale=() if ramp is None else ramp.swatches(lambda power: f"{10**power:.0e}"),
        marks=tuple(Swatch(*mark) for mark in marks if mark[0].words in looks),
    )


def color_by_bytes(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the bytes held for backward, each storage counted once."""
    held = Amounts("bytes held for backward", "{} held", format_bytes, Swatch(Look("", "nothing held"), "0 B"))
    return _color_by_amount(held_bytes_by_node(graph), held, drawn, palette)


def color_by_flops(graph: Graph, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color by the FLOPs of the forward ops and of their backward, where torch has formulas."""
    nothing = Swatch(Look("", "no formula for its FLOPs"), "-", "no formula")
    amounts = Amounts("FLOPs of forward and backward", "{}, forward and backward", format_flops, nothing)
    flops = [(node.flops or 0) + (node.backward_flops or 0) for node in graph.nodes]
    return _color_by_amount(flops, amounts, drawn, palette)


class Amounts(NamedTuple):
    """What is added up in a box, and how it is written."""

    title: str
    words: str
    write: Callable[[int], str]
    nothing: Swatch


def _color_by_amount(numbers: Sequence[int], amounts: Amounts, drawn: Sequence[range], palette: Palette) -> Coloring:
    """Color in proportion: a box with half of the largest amount is half as dark."""
    before = list(accumulate(numbers, initial=0))
    totals = [before[ids.stop] - before[ids.start] for ids in drawn]
    most = max(totals, default=0)
    ramp = Ramp(0, most or 1, palette.ramp)
    nothing = amounts.nothing._replace(look=amounts.nothing.look._replace(fill=palette.card))

    def look(ids: range) -> Look:
        total = before[ids.stop] - before[ids.start]
        return Look(ramp.at(total), amounts.words.format(amounts.write(total))) if total else nothing.look

    return Coloring(
        look=look,
        leaf=lambda _: Look(palette.card, ""),
        title=f"color: {amounts.title}, linear scale",
        scale=ramp.swatches(lambda number: amounts.write(round(number))) if most else (),
        marks=(nothing._replace(words=nothing.words or nothing.look.words),) if 0 in totals else (),
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
