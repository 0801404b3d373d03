"""Images whose channels come last in memory, although their shape says that they come first.

NOTE [Mixed pixels]
`reshape(c, h, w)` of an image of [h, w, c] changes its shape alone: each row of a plane then holds the red, green and
blue of a third of as many pixels. Done by NumPy, no call of torch shows it. But the values do: neighbors in an image
are alike, so in memory those are alike that lie one element apart, and one row. Where those are more alike that lie as
many elements apart as there are channels, and as many rows, the elements are still in the other order. A texture that
repeats itself after three pixels looks the same, but is as much alike further on.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.axes import MixedPixels
from gradinspect.graph import Frame
from gradinspect.recording.source_structure import calls_named, own_sources
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a convolution
MOST_CALLS = 12
MOST_ELEMENTS = 1 << 22
MOST_IMAGES = 32  # of a batch that are read
CHANNELS = (3, 4)
LEAST_SIDE = 16
MOST_RATIO = 0.8  # of the squared differences, to those of neighbors
APART = 3  # pixels, which are less alike than neighbors
LEAST_DECAY = 1.08  # of the squared differences there, to those of neighbors
LEAST_LENGTHS = 3  # of an image
_IMAGE_AXES = 4
_VIEWS = ("reshape", "view")


class _Seen(Struct):
    """All calls of a convolution on a line."""

    shape: tuple[int, ...] = ()
    num_calls: int = 0
    is_mixed: bool = True


class MixedPixelLog:
    """Looks at images. NOTE [Mixed pixels]."""

    functions = frozenset(("conv2d",))

    def __init__(self, errors: OwnErrors) -> None:
        """Count what is too large."""
        self._limit = SizeLimit(errors, "batch of images", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}
        self.line_in: Callable[[str, int], Frame | None] = lambda _file, _line: None

    def note(self, _function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        images: Any = argument(args, kwargs, 0, "input")
        if type(images) is not torch.Tensor or images.requires_grad or len(images.shape) != _IMAGE_AXES:
            return
        is_image = images.shape[1] in CHANNELS and min(images.shape[2:]) >= LEAST_SIDE
        seen = self._seen.setdefault(number, _Seen())
        if not is_image or not seen.is_mixed or seen.num_calls >= MOST_CALLS or not self._limit.allows(images, number):
            return
        seen.num_calls, seen.shape = seen.num_calls + 1, tuple(images.shape[1:])
        with unobserved():
            seen.is_mixed = _is_mixed(images[:MOST_IMAGES])

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[MixedPixels]:
        """Yield the lines where it was so in every call."""
        shapes = set[tuple[int, ...]]()  # an evaluation is given the same images
        for number, seen in self._seen.items():
            if seen.is_mixed and seen.num_calls >= LEAST_CALLS and seen.shape not in shapes:
                shapes.add(seen.shape)
                yield MixedPixels(
                    shape=seen.shape, num_calls=seen.num_calls, viewed=self._viewed(), used=frame_of(number)
                )

    def _viewed(self) -> Frame | None:
        """Return the only line of the program that gives something a shape of three lengths or more."""
        found = [
            (file, call.lineno)
            for name in _VIEWS
            for file in own_sources(f".{name}")
            for call in calls_named(file, name)
            if _num_lengths(call) >= LEAST_LENGTHS
        ]
        return self.line_in(*found[0]) if len(found) == 1 else None


def _num_lengths(call: ast.Call) -> int:
    """Return how many lengths a call of reshape or view is given."""
    first = call.args[0] if len(call.args) == 1 else None
    return len(first.elts) if isinstance(first, ast.Tuple | ast.List) else len(call.args)


def _is_mixed(images: torch.Tensor) -> bool:
    """Return whether what lies next to each other in memory is not what is alike."""
    channels = images.shape[1]
    values = ops.to(ops.detach(images), torch.float64)
    along, down = ((_difference(values, 1, axis), _difference(values, channels, axis)) for axis in (3, 2))
    decays = _difference(values, APART * channels, 3) > LEAST_DECAY * along[1]
    return decays and all(far < MOST_RATIO * near for near, far in (along, down))


def _difference(values: torch.Tensor, step: int, axis: int) -> float:
    """Return the mean of the squared differences between elements that are as many places apart on an axis."""
    length = values.shape[axis] - step
    return float(ops.item(ops.mean(ops.square(
        ops.sub(ops.narrow(values, axis, step, length), ops.narrow(values, axis, 0, length))
    ))))  # fmt: skip
