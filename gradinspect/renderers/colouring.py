"""Fill the boxes of a picture by what flows through them: gradient norms, bytes saved, dtypes.

What comes in: a `Graph`, and the ranges of node ids that a picture shows as one. What goes out: a `Look` for each of
them, and the `Swatch`es that explain the looks.

A new way to colour is a function that returns a `Colouring`, and one line in `COLOURINGS`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from gradinspect.analyses.folding import first_saved_bytes
from gradinspect.analyses.gradients import arriving_norm, gradients_of, parameter_rows
from gradinspect.graph import Graph
from gradinspect.renderers.drawing_parts import ColourBy
from gradinspect.units import format_bytes, format_dtype

# Light to dark in one hue, so that the order survives grey print and any colour vision: ColorBrewer's Blues.
RAMP = ("#F0F6FC", "#DAE8F5", "#BAD6EB", "#89BEDC", "#539ECD", "#2B7BBA", "#0B559F", "#08306B")
# Tints of the Okabe-Ito palette.
KINDS = ("#CFE3F5", "#FBE3B5", "#D5F0E6", "#F7DCEB", "#FBF6C9", "#F6D3BF", "#D9D9D9")
BLACK, WHITE = "#000000", "#FFFFFF"
NUM_SWATCHES = 5


class Look(NamedTuple):
    """How a box is filled, and what its tooltip says of it."""

    fill: str
    words: str
    fact: str = ""  # short, for the label
    line: str | None = None  # the border, when it is part of the look
    style: str = ""  # "dashed"
    mark: str = ""  # one letter, where there is room for no more

    @property
    def ink(self) -> str:
        """Black or white, whichever is told better from the fill: one of them has a contrast of at least 4.5."""
        light = luminance(self.fill)
        return BLACK if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else WHITE


class Swatch(NamedTuple):
    """A look with what it means."""

    look: Look
    text: str
    words: str = ""


class Colouring(NamedTuple):
    """One way to fill boxes."""

    look: Callable[[range], Look]  # of the nodes in one box
    leaf: Callable[[int], Look]  # of an AccumulateGrad node
    title: str
    scale: tuple[Swatch, ...]  # side by side, least first
    marks: tuple[Swatch, ...]  # what is not on the scale


NO_GRADIENT = Look(WHITE, "no gradient came here", "no gradient", "#777777", "dashed", "-")
ZERO = Look(WHITE, "the gradient is exactly zero", "norm 0", "#C04000", "", "0")
NOT_FINITE = Look("#FFE45C", "the gradient holds NaN or Inf", "NaN or Inf", BLACK, "", "!")
NOTHING_SAVED = Look(WHITE, "nothing saved")
NO_TENSOR = Look(WHITE, "no tensor", "", "#777777", "dashed", "-")
MIXED = Look(WHITE, "several dtypes", "several dtypes", BLACK, "dashed", "+")


def luminance(colour: str) -> float:
    """Return the relative luminance of `#RRGGBB`, as WCAG 2 defines it."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


class _LogRamp:
    """Colours on a logarithmic scale, over a factor of ten at least: less is no difference to speak of."""

    def __init__(self, values: Iterable[float]) -> None:
        usable = [math.log10(value) for value in values if value > 0 and math.isfinite(value)]
        self.is_empty = not usable
        self._high = max(usable, default=0.0)
        self._low = min(*usable, self._high - 1) if usable else -1.0

    def fill(self, value: float) -> str:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
        step = min(int(place), len(RAMP) - 2)
        return _between(RAMP[step], RAMP[step + 1], place - step)

    def swatches(self, write: Callable[[float], str]) -> tuple[Swatch, ...]:
        if self.is_empty:
            return ()
        shares = (number / (NUM_SWATCHES - 1) for number in range(NUM_SWATCHES))
        values = (10 ** (self._low + share * (self._high - self._low)) for share in shares)
        return tuple(Swatch(Look(self.fill(value), ""), write(value)) for value in values)


def _between(start: str, end: str, share: float) -> str:
    pairs = ((int(start[place : place + 2], 16), int(end[place : place + 2], 16)) for place in (1, 3, 5))
    return "#" + "".join(f"{round(low + share * (high - low)):02X}" for low, high in pairs)


def colour_by_gradient(graph: Graph, _drawn: Sequence[range]) -> Colouring:
    """Fill by the norm of the gradient that arrives: at a module's output, for a closed module."""
    norms = {ran.node: arriving_norm(ran) for ran in gradients_of(graph).nodes}
    leaves = {row.node: None if row.stats is None else row.stats.norm for row in parameter_rows(graph)}
    every = [norm for norm in (*norms.values(), *leaves.values()) if norm is not None]
    ramp = _LogRamp(every)

    def filled(norm: float | None) -> Look:
        if norm is None:
            return NO_GRADIENT
        if not math.isfinite(norm):
            return NOT_FINITE
        return ZERO if norm == 0 else Look(ramp.fill(norm), f"gradient norm {norm:.1e}", f"norm {norm:.1e}")

    def look(ids: range) -> Look:
        inside = [norm for node in ids if (norm := norms.get(node)) is not None]
        bad = next((norm for norm in inside if not math.isfinite(norm)), None)
        return filled(bad if bad is not None else inside[0] if inside else None)

    looks = {look.words: look for look in map(filled, [*(norms.get(n) for n in range(len(graph.nodes))), *every])}
    marks = ((ZERO, "0", "exactly zero"), (NO_GRADIENT, "none", "no gradient came"), (NOT_FINITE, "NaN", "NaN or Inf"))
    return Colouring(
        look=look,
        leaf=lambda node: filled(leaves.get(node)),
        title="fill: norm of the gradient that arrives, log scale",
        scale=ramp.swatches("{:.0e}".format),
        marks=tuple(Swatch(*mark) for mark in marks if mark[0].words in looks),
    )


def colour_by_bytes(graph: Graph, drawn: Sequence[range]) -> Colouring:
    """Fill by the bytes saved for backward, each storage counted once."""
    saved_before = list(accumulate(first_saved_bytes(graph), initial=0))
    totals = [saved_before[ids.stop] - saved_before[ids.start] for ids in drawn]
    ramp = _LogRamp(totals)

    def look(ids: range) -> Look:
        total = saved_before[ids.stop] - saved_before[ids.start]
        return Look(ramp.fill(total), f"{format_bytes(total)} saved") if total else NOTHING_SAVED

    return Colouring(
        look=look,
        leaf=lambda _: Look(WHITE, ""),
        title="fill: bytes saved for backward, log scale",
        scale=ramp.swatches(lambda value: format_bytes(round(value))),
        marks=(Swatch(NOTHING_SAVED, "0 B", "nothing saved"),) if 0 in totals else (),
    )


def colour_by_dtype(graph: Graph, drawn: Sequence[range]) -> Colouring:
    """Fill by the dtype of what the forward op made."""
    dtypes = [next((info.dtype for info in node.forward_outputs if info is not None), None) for node in graph.nodes]
    for number, node in enumerate(graph.nodes):
        dtypes[number] = dtypes[number] if node.leaf is None else node.leaf.info.dtype
    names = sorted({dtype for dtype in dtypes if dtype is not None})
    looks = {name: Look(KINDS[number % len(KINDS)], format_dtype(name)) for number, name in enumerate(names)}

    def look(ids: Sequence[int]) -> Look:
        found = {dtypes[node] for node in ids} - {None}
        return MIXED if len(found) > 1 else looks.get(next(iter(found), None) or "", NO_TENSOR)

    return Colouring(
        look=look,
        leaf=lambda node: look([node]),
        title="fill: dtype of the forward output",
        scale=tuple(Swatch(look, look.words) for look in looks.values()),
        marks=(Swatch(MIXED, "mixed", "several dtypes in one box"),) if MIXED in map(look, drawn) else (),
    )


COLOURINGS: dict[ColourBy, Callable[[Graph, Sequence[range]], Colouring]] = {
    "grad": colour_by_gradient,
    "bytes": colour_by_bytes,
    "dtype": colour_by_dtype,
}
