"""How boxes are filled: looks, and the scales that explain them.

What comes in: values and a `Palette`. What goes out: a `Look` for each value, and `Swatch`es for the legend.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gradinspect.renderers.picture.colors.palettes import blend, contrast

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
        return max(BLACK, WHITE, key=lambda ink: contrast(ink, self.fill))


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


class LogRamp:
    """Colours on a logarithmic scale, over a factor of ten at least: less is no difference to speak of."""

    def __init__(self, values: Iterable[float], colours: Sequence[str]) -> None:
        """Fit the scale to the values."""
        self._colours = colours
        usable = [math.log10(value) for value in values if value > 0 and math.isfinite(value)]
        self.is_empty = not usable
        self._high = max(usable, default=0.0)
        self._low = min(*usable, self._high - 1) if usable else -1.0

    def fill(self, value: float) -> str:
        """Return the colour of a value."""
        share = (math.log10(value) - self._low) / (self._high - self._low)
        place = min(max(share, 0.0), 1.0) * (len(self._colours) - 1)
        step = min(int(place), len(self._colours) - 2)
        return blend(self._colours[step], self._colours[step + 1], place - step)

    def swatches(self, write: Callable[[float], str]) -> tuple[Swatch, ...]:
        """Return some colours of the scale, least first."""
        if self.is_empty:
            return ()
        shares = (number / (NUM_SWATCHES - 1) for number in range(NUM_SWATCHES))
        values = (10 ** (self._low + share * (self._high - self._low)) for share in shares)
        return tuple(Swatch(Look(self.fill(value), ""), write(value)) for value in values)
