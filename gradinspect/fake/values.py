"""Answers for what reads values, which fake tensors do not have.

NOTE [Losses that are printed]
A training loop reads its loss in order to print it: `print(loss.item())`. Outside modules and the engine, a floating
point scalar is answered with 1, and the report says which lines were answered so. Whatever a module,
a gradient hook or a comparison reads may decide what runs next, so it is answered only with the number that the user
gives, or with what can be assumed: NOTE [Values that are assumed].

NOTE [Numbers that are written down]
Numbers that are drawn are known: NOTE [Numbers that are drawn]. So are those that the program writes down,
`lengths = torch.tensor([3, 5, 7])`, as it may go on with `x[:, : lengths.max()]`.
"""

import sys
from collections.abc import Callable, Collection
from typing import Any

import torch

from gradinspect.fake.assumptions import Assumptions
from gradinspect.fake.draws import MAX_KEPT, Draws
from gradinspect.fake.read_values import (
    ReplayedReads,
    TellScratch,
    depends_on_values,
    is_written_by_kernels,
    number_of,
    place_of,
    results_of,
    shapes_of,
    tensor_of,
)
from gradinspect.fake.sizes import largest_result
from gradinspect.recording.frames import line_at, line_name, user_frames
from gradinspect.torch_api.fakes import (
    NEEDS_VALUES,
    FakeTensor,
    answers_device,
    give_values,
    known_number,
    reads_scalar,
    unset_fake_temporarily,
)
from gradinspect.torch_api.modes import TorchDispatchMode, unobserved
from gradinspect.units import format_count

LOGGED = 1.0  # a loss that is neither NaN nor infinite
LARGEST = "Sizes and counts that depend on values were taken to be the largest possible"
FINITE = "Values were taken to be finite"
OTHERS = "A real run may draw other numbers"
MAX_LINES = 3
MAX_COLUMNS = 78  # of a sentence that lists fewer lines if it is longer
_WRITTEN_DOWN = torch.ops.aten.lift_fresh.default


class AnsweredReads(TorchDispatchMode):
    """Answers what reads a scalar, or makes a size, of values that are not there. Active above a fake mode.

    NOTE [Losses that are printed], NOTE [Values that are assumed] and NOTE [Sizes that depend on values].

    Args:
        hint: The number that every read gets; None: only what looks like logging gets one.
        is_computing: Whether a module or the engine runs now.
        replayed: What was read in real steps, and is read again. NOTE [Values of real steps] in `read_values`.
    """

    def __init__(
        self, hint: float | None, is_computing: Callable[[], bool], replayed: ReplayedReads | None = None
    ) -> None:
        """Start without notes."""
        super().__init__()
        self._hint = hint
        self.replayed = replayed
        self.tell_scratch: TellScratch | None = None
        self.is_bound = False  # a size was taken to be the largest possible
        self._is_computing = is_computing
        self.draws = Draws()
        self._lines: dict[str, dict[str, None]] = {}  # by what was assumed there
        self._assumptions = Assumptions()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the result must know."""
        return tuple(f"{what}: {_listed(lines)}." for what, lines in self._lines.items())

    @property
    def values_from(self) -> str:
        """Say where values come from that were read: `Values read at train.py:12 (7 reads) are those of 2 real steps`.

        "" if none were needed.
        """
        replayed = self.replayed
        if replayed is None or not replayed.num_reads:
            return ""
        steps = "one real step" if replayed.num_steps == 1 else f"{replayed.num_steps} real steps"
        reads = format_count(replayed.num_reads, "read")
        sentences = (
            f"Values read at {_listed(replayed.lines, most)} ({reads}) are those of {steps}."
            for most in range(MAX_LINES, 0, -1)
        )
        *longer, shortest = sentences
        return next((one for one in longer if len(one) <= MAX_COLUMNS), shortest)

    def reading(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replace a method that reads all elements."""

        def read(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            replayed = self.replayed
            if replayed is None:
                return original(tensor, *args, **kwargs)
            place = place_of(name, sys._getframe(1))
            found = replayed.take(place, shapes_of((tensor,)))
            with unset_fake_temporarily(), unobserved():
                real = None if found is None else tensor_of(found, tensor)
                result = None if real is None else original(real, *args, **kwargs)
            if result is None:
                return original(tensor, *args, **kwargs)
            if isinstance(tensor, FakeTensor):
                replayed.count(place)
            return result

        return read

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the fake op; where it lacks a value, answer."""
        if answers_device(func, args):
            return args[0].fake_device
        if self.replayed is not None:
            if depends_on_values(func, args):
                return self._replay(self.replayed, func, args, kwargs or {})
            if is_written_by_kernels(func, kwargs or {}, sys._getframe(1)):
                with unset_fake_temporarily():
                    return func(*args, **(kwargs or {}))
        return self._run(func, args, kwargs or {})

    def _replay(self, replayed: ReplayedReads, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer with what was read in real steps; sizes only where they are not known."""
        place = place_of(str(func), sys._getframe(2))
        found = replayed.take(place, shapes_of(args))
        number = None if found is None else number_of(found)
        if number is not None:
            replayed.count(place)
            return number
        if found is None or not found.made:
            return self._run(func, args, kwargs)
        try:
            return func(*args, **kwargs)
        except NEEDS_VALUES:
            replayed.count(place)
            if self.tell_scratch is not None and found.scratch_bytes:
                self.tell_scratch(func, found.scratch_bytes)
            return results_of(found, func, args)

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the fake op; where it lacks a value, assume one."""
        try:
            result = known_number(func, args)
            if result is None:
                result = func(*args, **kwargs)
        except NEEDS_VALUES:
            is_read = func is reads_scalar
            what, result = self._answer(args[0]) if is_read else (LARGEST, largest_result(func, args, kwargs))
            if result is None:
                raise
            self.is_bound = self.is_bound or not is_read
            self._note(what)
        else:
            if func is _WRITTEN_DOWN:
                _keep_values(result, args[0])
            elif func is reads_scalar and self.draws.has_guessed:
                self._note(OTHERS)
            self.draws.follow(func, args, kwargs, result)
            self._assumptions.follow(func, args, result)
        return result

    def _note(self, what: str) -> None:
        """Note the line that runs, and what was assumed there."""
        frame = next(user_frames(sys._getframe(3)), None)
        if frame is not None:
            self._lines.setdefault(what, {}).setdefault(line_name(frame.f_code.co_filename, line_at(frame)))

    def _answer(self, tensor: torch.Tensor) -> tuple[str, complex | None]:
        """Return what is assumed, and the number to give, of the kind that the dtype has; None: nothing is."""
        dtype, number = tensor.dtype, LOGGED if self._hint is None else self._hint
        assumed = self._assumptions.of(tensor) if self._hint is None else None
        if assumed is not None:
            number = assumed.number
        elif self._hint is None and (not dtype.is_floating_point or self._is_computing()):
            return "", None
        what = f"Values that are read were taken to be {number:g}"
        if assumed is not None:
            what = LARGEST if assumed.is_largest else FINITE
        if dtype is torch.bool:
            return what, bool(number)
        if dtype.is_complex:
            return what, complex(number)
        return what, number if dtype.is_floating_point else int(number)


def _listed(lines: Collection[str], most: int = MAX_LINES) -> str:
    """List a few lines of the program, and say how many more there are."""
    shown = [*lines][:most]
    more = len(lines) - len(shown)
    return ", ".join(shown) + (f" and {format_count(more, 'more line')}" if more else "")


def _keep_values(result: torch.Tensor, written: torch.Tensor) -> None:
    """Give a few whole numbers that a program writes down their values."""
    is_ours = type(written) is torch.Tensor and not written.is_floating_point() and not written.is_complex()
    if is_ours and written.device.type == "cpu" and 1 < written.numel() <= MAX_KEPT:  # torch knows a single one
        with unset_fake_temporarily():
            give_values(result, written)
