"""Looks of boxes, and the scales that explain them.

What comes in: values and a `Palette`. What goes out: a `Look` for each value, and `Swatch`es for the legend.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gradinspect.renderers.picture.colors.palettes import blend, contrast

BLACK, WHITE = "#000000", "#FFFFFF"
NUM_SWATCHES = 5


class Look(NamedTuple):
    """How a box is filled, and what its tooltip says about it."""

    fill: str
    words: str
    fact: str = ""  # short, for the label
    line: str | None = None  # the border, if it is part of the look
    style: str = ""  # "dashed"
    mark: str = ""  # one character, for tiny cells

    @property
    def ink(self) -> str:
        """Black or white, whichever contrasts better with the fill: one of them has a contrast of at least 4.5."""
        return max(BLACK, WHITE, key=lambda ink: contrast(ink, self.fill))


class Swatch(NamedTuple):
    """A look with its meaning."""

    look: Look
    text: str
    words: str = ""


class Coloring(NamedTuple):
    """One way to color boxes."""

    look: Callable[[range], Look]  # for the nodes of one box
    leaf: Callable[[int], Look]  # for an AccumulateGrad node
    title: str
    scale: tuple[Swatch, ...]  # side by side, least first
    marks: tuple[Swatch, ...]  # looks that are not on the scale


class Ramp:
    """Colors on a scale from one number to another."""

    def __init__(self, low: float, high: float, colors: Sequence[str]) -> None:
        """Span the scale."""
        self._low, self._high, self._colors = low, high, colors

    def at(self, number: float) -> str:
        """Return the color of a number."""
        share = (number - self._low) / (self._high - self._low)
        place = min(max(share, 0.0), 1.0) * (len(self._colors) - 1)
        step = min(int(place), len(self._colors) - 2)
        return blend(self._colors[step], self._colors[step + 1], place - step)

    def swatches(self, write: Callable[[float], str]) -> tuple[Swatch, ...]:
        """Return some colors of the scale, least first."""
        shares = (number / (NUM_SWATCHES - 1) for number in range(NUM_SWATCHES))
        numbers = (self._low + share * (self._high - self._low) for share in shares)
        return tuple(Swatch(Look(self.at(number), ""), write(number)) for number in numbers)


def log_ramp(values: Iterable[float], colors: Sequence[str]) -> Ramp | None:
    """Span a scale of the logarithms of values, at least a factor of ten; None if none is positive and finite."""
    usable = [math.log10(value) for value in values if value > 0 and math.isfinite(value)]
    return Ramp(min(*usable, max(usable) - 1), max(usable), colors) if usable else None
